//! What can be taken along: scores as a table, records as lines of JSON.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::RunId;
use domain::control::{Control, ExportItem};
use futures::{StreamExt, stream};
use report::views::Grid;
use tokio::sync::mpsc;

use super::{Visit, answer, internal};

/// Records on their way to a visitor: they may be long, and the coordinator reads ahead already.
const IN_FLIGHT_MAX: usize = 1;

/// `GET /runs/{run}/scores.csv`: a row for each model on each task.
pub(super) async fn scores((State(site), Extension(visitor)): Visit, Path(name): Path<String>) -> Response {
    let run = RunId::new(name);
    let view = match site.access(&visitor).view(&run).await {
        Ok(view) => view,
        Err(error) => return answer(&visitor, Err::<(), _>(error)),
    };
    let written = tokio::task::spawn_blocking(move || {
        let mut csv = Vec::new();
        Grid::of_view(&view, |_| None).long().write_csv(&mut csv).map(|()| csv)
    });
    let csv = written.await.map_err(internal).and_then(|csv| csv.map_err(internal));
    answer(&visitor, csv.map(|csv| (attached("text/csv; charset=utf-8", &run, "csv"), Body::from(csv))))
}

/// `GET /runs/{run}/records.jsonl`: every record that counts, as this visitor may read it. A slow reader slows down the reading.
pub(super) async fn records((State(site), Extension(visitor)): Visit, Path(name): Path<String>) -> Response {
    let run = RunId::new(name);
    let Ok(room) = Arc::clone(&site.exports).try_acquire_owned() else {
        let headers = [(header::RETRY_AFTER, "60")];
        return (StatusCode::SERVICE_UNAVAILABLE, headers, "others export now; try again in a minute\n")
            .into_response();
    };
    let access = site.access(&visitor);
    // An unknown run is told as such, before anything is sent.
    if let Err(error) = access.view(&run).await {
        return answer(&visitor, Err::<(), _>(error));
    }
    let (lines, sent) = mpsc::channel::<Result<String, std::io::Error>>(IN_FLIGHT_MAX);
    let named = run.clone();
    tokio::spawn(async move {
        let _room = room;
        let mut items = access.records(&named);
        while let Some(item) = items.next().await {
            let line = match item {
                Ok(ExportItem::Record(json)) => Ok(format!("{json}\n")),
                Ok(ExportItem::Documents(_) | ExportItem::Manifest(_)) => continue,
                // The transfer breaks off, so that nobody takes a part for the whole.
                Err(error) => Err(std::io::Error::other(error.message)),
            };
            let is_last = line.is_err();
            if lines.send(line).await.is_err() || is_last {
                return;
            }
        }
    });
    let body = stream::unfold(sent, |mut sent| async { Some((sent.recv().await?, sent)) });
    (attached("application/x-ndjson", &run, "jsonl"), Body::from_stream(body)).into_response()
}

/// Headers of a file with the name of a run. Names have no characters that a header cannot hold: others are no names of runs.
fn attached(kind: &str, run: &RunId, end: &str) -> [(header::HeaderName, String); 2] {
    let plain: String =
        run.as_str().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{plain}.{end}\"")),
    ]
}
