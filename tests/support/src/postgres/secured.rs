//! A Postgres server with TLS: roles by password, by client certificate, by both, and none of them without TLS; the tests themselves come in plain.
//!
//! Invariant: the certificate names `localhost`, never an address, so that a client which connects to `127.0.0.1` meets a wrong host name.

use std::fs::{self, Permissions};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;

use super::{Postgres, PostgresServer};
use crate::tls::{Authority, Identity};
use crate::workdir::Workdir;

/// A server whose certificate can be changed while it runs.
#[derive(Debug)]
pub struct SecuredPostgres {
    server: PostgresServer,
    folder: Workdir,
}

/// Who comes in how. Groups, so that each test has roles of its own. The first line that fits decides.
const RULES: &str = "
host    all  postgres                       127.0.0.1/32  trust
hostssl all  +oncesink_by_certificate       127.0.0.1/32  cert
hostssl all  +oncesink_by_both              127.0.0.1/32  scram-sha-256  clientcert=verify-full
hostssl all  +oncesink_with_password        127.0.0.1/32  scram-sha-256
";

/// The groups of the rules beside the one that every server of ours has.
const GROUPS: &str = "CREATE ROLE oncesink_by_certificate; CREATE ROLE oncesink_by_both;";

impl SecuredPostgres {
    /// Starts the server with this certificate; it believes clients of this authority.
    pub fn start_blocking(authority: &Authority, identity: &Identity) -> Self {
        let folder = Workdir::new("postgres-tls");
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("ca.pem"), authority.certificate()).expect("writing a certificate");
        fs::write(path("hba.conf"), RULES).expect("writing the access rules");
        write_identity(&folder, identity);
        let server = PostgresServer::launch(vec![
            ("ssl".into(), "on".into()),
            ("ssl_ca_file".into(), path("ca.pem")),
            ("ssl_cert_file".into(), path("server.pem")),
            ("ssl_key_file".into(), path("server.key")),
            ("hba_file".into(), path("hba.conf")),
        ]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            use sqlx::Executor;
            server.connection().await.execute(GROUPS).await.expect("making the groups");
        });
        Self { server, folder }
    }

    /// Gives the running server another certificate; sessions that are open stay. New sessions meet it within moments.
    pub fn set_identity(&self, identity: &Identity) {
        write_identity(&self.folder, identity);
        self.server.reload();
    }

    /// The port; with TLS reached as `localhost`.
    pub fn port(&self) -> u16 {
        self.address().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }
}

/// Plain, as the superuser.
impl Deref for SecuredPostgres {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.server
    }
}

fn write_identity(folder: &Workdir, identity: &Identity) {
    fs::write(folder.path().join("server.pem"), &identity.certificate).expect("writing a certificate");
    let key = folder.path().join("server.key");
    fs::write(&key, &identity.key).expect("writing a key");
    // The server refuses a key that others can read, and must be able to read it itself.
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("closing a key");
    if let Some(user) = super::server::account() {
        nix::unistd::chown(&key, Some(user.uid), Some(user.gid)).expect("giving a key away");
    }
}
