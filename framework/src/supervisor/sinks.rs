//! Running several sinks side by side: one that ends does not end the others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

use crate::error::Failure;
use crate::record::TopicPartition;
use crate::sink::Sink;
use crate::store::Store;
use crate::supervisor::live::LiveSink;
use crate::supervisor::run::supervise;
use crate::supervisor::settings::SinkSettings;
use crate::writer::ConfigSource;

type Running = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// How a sink ended.
#[derive(Debug)]
pub enum Ended {
    /// It was told to stop, and nothing is open.
    Stopped,
    /// With `until_end`: every stored offset has reached its end.
    Reached,
    /// With `until_end`: all that is left belongs to stopped partitions.
    Short(Vec<TopicPartition>),
    /// The drain deadline passed with a COMMIT unanswered; the next claim settles it.
    DrainPassed,
    /// Refused before anything was consumed.
    Refused(Failure),
    /// Something that waiting would not mend.
    Fatal(Failure),
}

/// A sink that is ready to run.
pub struct SinkTask {
    name: Arc<str>,
    live: Arc<LiveSink>,
    start: Box<dyn FnOnce(watch::Receiver<bool>) -> Running + Send>,
}

impl SinkTask {
    /// A sink over a store. `config` is called for every new connection, so that secrets are read again.
    pub fn new<S: Store, K: Sink<S>>(
        settings: SinkSettings,
        store: Arc<S>,
        config: ConfigSource<K::Config>,
    ) -> Self {
        let live = Arc::new(LiveSink::new(Arc::clone(&settings.group)));
        let name = Arc::clone(&settings.name);
        let shared = Arc::clone(&live);
        let start = Box::new(move |shutdown| -> Running {
            Box::pin(supervise::<S, K>(settings, store, config, shared, shutdown))
        });
        Self { name, live, start }
    }

    /// The sink's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What metrics and health checks see of it.
    pub fn live(&self) -> Arc<LiveSink> {
        Arc::clone(&self.live)
    }
}

/// Says at once why a sink ended that was not told to, since the others may go on for weeks.
fn tell(name: &str, ended: &Ended, others: usize) {
    let flow = match others {
        0 => "",
        1 => "; the other sink goes on",
        _ => "; the other sinks go on",
    };
    match ended {
        Ended::Stopped | Ended::Reached | Ended::Short(_) => {}
        Ended::DrainPassed => tracing::warn!(
            "{name}: the drain deadline passed with a COMMIT unanswered; the next claim finds out"
        ),
        Ended::Refused(failure) => tracing::error!("{name}: {failure}{flow}"),
        Ended::Fatal(failure) => tracing::error!("{name}: ended: {failure}{flow}"),
    }
}

/// Runs sinks until `shutdown` is ready, or until each has ended by itself. Needs a multi-threaded tokio runtime: a sink's writers have threads of their own,
/// and their transactions run here.
pub async fn run(sinks: Vec<SinkTask>, shutdown: impl Future<Output = ()>) -> Vec<(Arc<str>, Ended)> {
    let (stop, stopped) = watch::channel(false);
    let mut running = tokio::task::JoinSet::new();
    for sink in sinks {
        let (name, live) = (Arc::clone(&sink.name), Arc::clone(&sink.live));
        let ended = (sink.start)(stopped.clone());
        running.spawn(async move {
            let ended = ended.await;
            live.end();
            (name, ended)
        });
    }
    let mut results: Vec<(Arc<str>, Ended)> = Vec::new();
    tokio::pin!(shutdown);
    let mut told = false;
    loop {
        tokio::select! {
            next = running.join_next() => match next {
                Some(Ok((name, ended))) => {
                    tell(&name, &ended, running.len());
                    results.push((name, ended));
                }
                Some(Err(error)) => {
                    let ended = Ended::Fatal(Failure::fatal(format!("a sink's task ended: {error}")));
                    tell("a sink", &ended, running.len());
                    results.push(("".into(), ended));
                }
                None => return results,
            },
            () = &mut shutdown, if !told => {
                told = true;
                let _ = stop.send(true);
            }
        }
    }
}
