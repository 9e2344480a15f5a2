//! `/metrics`, `/healthz`, `/readyz`.
//!
//! Invariant: answers come from a snapshot and never wait for Kafka or the database, so that a probe tells of this process alone.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use oncesink::metrics::{Kind, LIST, Live};
use tokio::net::TcpListener;

use crate::exit::Failed;

/// The text format's version is part of its type.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Histograms keep single observations until somebody folds them in.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Installs the recorder of this process, with the bounds of every histogram in the list.
pub(crate) fn recorder() -> Result<PrometheusHandle, Failed> {
    builder()
        .and_then(PrometheusBuilder::install_recorder)
        .inspect(|_| oncesink::metrics::describe())
        .map_err(|error| Failed::preflight(format!("cannot record metrics: {error}")))
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in LIST {
        if let Kind::Histogram(bounds) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds)?;
        }
    }
    Ok(builder)
}

/// How long a port may take to be free after its process was killed.
const LEAVING: Duration = Duration::from_secs(1);

/// A listener that holds its port.
pub(crate) struct Bound {
    listener: TcpListener,
}

impl Bound {
    /// Takes the port; a taken one is found before anything is consumed.
    pub(crate) async fn bind(listen: SocketAddr) -> Result<Self, Failed> {
        let failed = |error: std::io::Error| {
            Failed::preflight(format!(
                "http.listen: cannot listen on {listen}: {error}; choose another port, or 0 for a free one"
            ))
        };
        let began = Instant::now();
        let listener = loop {
            match TcpListener::bind(listen).await {
                // Whoever was killed a moment ago may still be on its way out.
                Err(error) if error.kind() == ErrorKind::AddrInUse && began.elapsed() < LEAVING => {
                    tokio::time::sleep(LEAVING / 20).await;
                }
                bound => break bound.map_err(failed)?,
            }
        };
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!("metrics and health at http://{address}");
        Ok(Self { listener })
    }

    /// Serves until `stop`.
    pub(crate) async fn serve(
        self,
        live: Arc<dyn Live>,
        recorded: PrometheusHandle,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let upkeep = tokio::spawn(keep_up(recorded.clone()));
        let routes = routes(live, recorded);
        if let Err(error) = axum::serve(self.listener, routes).with_graceful_shutdown(stop).await {
            tracing::error!("http: {error}");
        }
        upkeep.abort();
    }
}

async fn keep_up(recorded: PrometheusHandle) {
    let mut tick = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        tick.tick().await;
        recorded.run_upkeep();
    }
}

#[derive(Clone)]
struct Sources {
    live: Arc<dyn Live>,
    recorded: PrometheusHandle,
}

fn routes(live: Arc<dyn Live>, recorded: PrometheusHandle) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Sources { live, recorded })
}

async fn metrics(State(sources): State<Sources>) -> impl IntoResponse {
    let mut text = sources.recorded.render();
    text.push_str(&oncesink::metrics::render(&sources.live.partition_series()));
    ([(header::CONTENT_TYPE, TEXT)], text)
}

async fn healthz(State(sources): State<Sources>) -> impl IntoResponse {
    verdict(sources.live.healthy())
}

async fn readyz(State(sources): State<Sources>) -> impl IntoResponse {
    verdict(sources.live.ready())
}

fn verdict(answer: Result<(), String>) -> (StatusCode, String) {
    match answer {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

#[cfg(test)]
mod tests {
    use oncesink::metrics::PartitionSeries;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;
    use crate::exit::Exit;

    struct One;

    impl Live for One {
        fn partition_series(&self) -> Vec<PartitionSeries> {
            vec![PartitionSeries {
                group: "g".into(),
                topic: "t".into(),
                partition: 0,
                lag_records: Some(3),
                lag_readable_records: None,
                lag_seconds: None,
                stored_offset: Some(1),
                high_watermark: Some(4),
                last_stable_offset: None,
                log_start_offset: None,
                buffered_records: 0,
                state: "running",
            }]
        }

        fn healthy(&self) -> Result<(), String> {
            Ok(())
        }

        fn ready(&self) -> Result<(), String> {
            Err("waiting for the group".to_owned())
        }
    }

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn answers_and_a_taken_port() {
        let bound = Bound::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = bound.listener.local_addr().unwrap();
        let taken = Bound::bind(address).await.err().unwrap();
        assert_eq!(taken.exit, Exit::Preflight);
        assert!(taken.message.starts_with(&format!("http.listen: cannot listen on {address}: ")));

        let recorder = builder().unwrap().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            oncesink::metrics::describe();
            metrics::histogram!("oncesink_batch_rows", "group" => "g").record(150.0);
            metrics::counter!("oncesink_fenced_total", "group" => "g", "topic" => "t").increment(2);
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(bound.serve(Arc::new(One), handle, async move {
            let _ = stopped.await;
        }));

        let scrape = ask(address, "/metrics").await;
        assert!(scrape.contains("content-type: text/plain; version=0.0.4"), "{scrape}");
        assert!(scrape.contains("oncesink_fenced_total{group=\"g\",topic=\"t\"} 2\n"), "{scrape}");
        assert!(scrape.contains("oncesink_batch_rows_bucket{group=\"g\",le=\"200\"} 1\n"), "{scrape}");
        assert!(
            scrape.contains("oncesink_lag_records{group=\"g\",topic=\"t\",partition=\"0\"} 3\n"),
            "{scrape}"
        );
        assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200 "));
        let ready = ask(address, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 503 ") && ready.ends_with("waiting for the group\n"), "{ready}");
        assert!(ask(address, "/admin").await.starts_with("HTTP/1.1 404 "));

        drop(stop);
        server.await.unwrap();
    }
}
