//! Which TCP ports a process of this machine holds: by them its sessions are found in `pg_stat_activity`.
//!
//! Must not: guess. A port is a process's own only when one of its descriptors is that very socket.

use std::collections::HashSet;
use std::fs;

/// The local ports of all TCP sockets over IPv4 that the process has open now. Empty when it has ended.
pub fn tcp_ports(pid: u32) -> Vec<u16> {
    let sockets = sockets(pid);
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    table.lines().skip(1).filter_map(|line| port_of(line, &sockets)).collect()
}

/// Inodes of the sockets among the process's descriptors.
fn sockets(pid: u32) -> HashSet<String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect()
}

/// A line is: number, local address and port in hexadecimal, remote address, state, queues, timer, retransmissions, user, timeout, inode.
fn port_of(line: &str, sockets: &HashSet<String>) -> Option<u16> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let inode = fields.get(9)?;
    let (_, port) = fields.get(1)?.split_once(':')?;
    sockets.contains(*inode).then(|| u16::from_str_radix(port, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_ports_of_this_process_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let port = client.local_addr().expect("an address").port();
        assert!(super::tcp_ports(std::process::id()).contains(&port));
        drop(client);
        assert!(!super::tcp_ports(std::process::id()).contains(&port));
    }
}
