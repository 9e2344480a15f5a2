//! One secured Kafka and one secured Postgres for all tests of a process that need them, and the certificates of their clients.
//!
//! Invariant: they are started by the first test that asks and end with the process, as the plain ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

use crate::kafka::SecuredKafka;
use crate::postgres::SecuredPostgres;
use crate::tls::{Authority, Identity};
use crate::workdir::Workdir;

/// The secured servers. Tests may not stop or configure them, but make topics, schemas, users and roles of their own.
pub struct Secured {
    /// The broker.
    pub kafka: SecuredKafka,
    /// The database server.
    pub postgres: SecuredPostgres,
    /// Who signed the servers' certificates, and whom they believe.
    pub authority: Authority,
    folder: Workdir,
}

/// Also held here, so that they end with the process.
static SHARED: Mutex<Option<Arc<Secured>>> = Mutex::new(None);

impl Secured {
    /// The shared servers, started by the first caller.
    pub async fn shared() -> Arc<Self> {
        tokio::task::spawn_blocking(|| {
            let mut shared = SHARED.lock().expect("the lock of the secured servers");
            let secured = shared.get_or_insert_with(|| {
                end_at_exit();
                Arc::new(Self::start())
            });
            Arc::clone(secured)
        })
        .await
        .expect("starting the secured servers")
    }

    fn start() -> Self {
        let authority = Authority::new("oncesink tests");
        let (kafka, postgres) = thread::scope(|scope| {
            let kafka = scope.spawn(|| SecuredKafka::start_blocking(&authority));
            let identity = authority.issue("database", &["localhost"]);
            let postgres = SecuredPostgres::start_blocking(&authority, &identity);
            (kafka.join().expect("starting Kafka"), postgres)
        });
        let secured = Self { kafka, postgres, authority, folder: Workdir::new("clients") };
        secured.write("ca.pem", &secured.authority.certificate());
        secured.write("stranger.pem", &Authority::new("somebody else").certificate());
        secured
    }

    /// The path of the authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// The path of the certificate of an authority that signed nothing here.
    pub fn strange_ca(&self) -> PathBuf {
        self.path("stranger.pem")
    }

    /// A client's certificate and key as files, signed by the authority; their paths.
    pub fn client(&self, common_name: &str) -> (PathBuf, PathBuf) {
        self.client_files(common_name, &self.authority.issue(common_name, &[]))
    }

    /// The same for an identity made elsewhere, or later under the same name, which replaces the files.
    pub fn client_files(&self, common_name: &str, identity: &Identity) -> (PathBuf, PathBuf) {
        let certificate = self.write(&format!("{common_name}.pem"), &identity.certificate);
        (certificate, self.write(&format!("{common_name}.key"), &identity.key))
    }

    /// A file of these clients.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write_whole(&path, text);
        path
    }
}

/// In one step, as whoever rotates certificates should: nobody reads half a file.
fn write_whole(path: &Path, text: &str) {
    let half = path.with_extension("half");
    fs::write(&half, text).expect("writing a certificate or key");
    fs::rename(half, path).expect("putting a certificate or key in its place");
}

/// Statics are not dropped. Without this the kernel would still end the servers, but their folders would stay.
fn end_at_exit() {
    extern "C" fn end() {
        drop(SHARED.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
    static REGISTERED: Once = Once::new();
    // SAFETY: `end` is a function for the whole life of the process and does not unwind.
    REGISTERED.call_once(|| unsafe {
        libc::atexit(end);
    });
}
