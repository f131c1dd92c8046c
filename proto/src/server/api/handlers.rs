//! The handlers of the routes.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::rejection::ExtensionRejection;
use axum::extract::{FromRequestParts, Path, RawQuery, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use domain::caller::Caller;
use domain::control::{BenchmarkCommand, Control, Submission};
use domain::pools::PoolStates;
use domain::{ErrorCode, RunId, ServiceError, WorkerId};

use super::{Api, from_json, streams};
use crate::api::problem::Problem;
use crate::api::{Count, RequeueBody, RetryBody, SubmissionBody, Version};

type Shared = State<Api>;
type Who = Extension<Caller>;
type Named = Path<String>;

/// The coordinator as the caller may use it, whom the guard has established.
pub(super) struct Asked(Api, Arc<dyn Control>);

impl FromRequestParts<Api> for Asked {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ExtensionRejection> {
        let Extension(caller) = Who::from_request_parts(parts, api).await?;
        Ok(Self(api.clone(), api.control(&caller)))
    }
}

pub(super) async fn list(Asked(api, control): Asked) -> Response {
    api.json(async { control.list().await }).await
}

pub(super) async fn submit(Asked(api, control): Asked, body: Bytes) -> Response {
    api.json(async { control.submit(submission(&api, &body)?).await }).await
}

pub(super) async fn extend(Asked(api, control): Asked, Path(run): Named, body: Bytes) -> Response {
    api.json(async { control.extend(&RunId::new(run), submission(&api, &body)?).await }).await
}

fn submission(api: &Api, body: &Bytes) -> Result<Submission, ServiceError> {
    let SubmissionBody { configuration, pack } = from_json(body)?;
    Ok(Submission { configuration, pack: pack.map(|hash| api.sent.get(&hash)).transpose()? })
}

pub(super) async fn view(Asked(api, control): Asked, Path(run): Named) -> Response {
    api.json(async { control.view(&RunId::new(run)).await }).await
}

pub(super) async fn watch(State(api): Shared, Extension(caller): Who, Path(run): Named) -> Response {
    streams::views(&api, caller, RunId::new(run)).await
}

pub(super) async fn records(State(api): Shared, Extension(caller): Who, Path(run): Named) -> Response {
    streams::records(&api, caller, RunId::new(run)).await
}

pub(super) async fn command(
    command: BenchmarkCommand,
    Asked(api, control): Asked,
    Path(run): Named,
) -> Response {
    api.json(async { control.command(&RunId::new(run), command).await }).await
}

pub(super) async fn retry(Asked(api, control): Asked, Path(run): Named, body: Bytes) -> Response {
    let retried = async {
        let RetryBody { causes } = from_json(&body)?;
        Ok(Count { count: control.retry(&RunId::new(run), &causes).await? })
    };
    api.json(retried).await
}

pub(super) async fn requeue(Asked(api, control): Asked, Path(run): Named, body: Bytes) -> Response {
    let requeued = async {
        let RequeueBody { units } = from_json(&body)?;
        Ok(Count { count: control.requeue(&RunId::new(run), &units).await? })
    };
    api.json(requeued).await
}

pub(super) async fn remove(
    Asked(api, control): Asked,
    Path(run): Named,
    RawQuery(query): RawQuery,
) -> Response {
    let removed = async {
        let force = one(query.as_deref(), "force", false)?;
        control.remove(&RunId::new(run), force).await
    };
    api.done(removed).await
}

pub(super) async fn dead_letters(
    Asked(api, control): Asked,
    Path(run): Named,
    RawQuery(query): RawQuery,
) -> Response {
    let letters = async {
        let unit = values(query.as_deref(), "unit").next().map(|unit| parsed("unit", &unit)).transpose()?;
        control.dead_letters(&RunId::new(run), unit).await
    };
    api.json(letters).await
}

pub(super) async fn pack(State(api): Shared, Extension(caller): Who, Path(hash): Named) -> Response {
    let exchange = api.door.services.exchange(&caller);
    match api.result(async { exchange.pack(&hash).await }).await {
        Ok(pack) => {
            ([(header::CONTENT_TYPE, "application/octet-stream")], Body::from(Bytes::from_owner(pack)))
                .into_response()
        }
        Err(error) => Problem::from(&error).into_response(),
    }
}

pub(super) async fn send_pack(State(api): Shared, Path(hash): Named, request: Request) -> Response {
    api.done(api.sent.receive(&hash, request.into_body())).await
}

pub(super) async fn workers(Asked(api, control): Asked) -> Response {
    api.json(async { control.workers().await }).await
}

pub(super) async fn drain(Asked(api, control): Asked, Path(worker): Named) -> Response {
    api.done(async { control.drain_worker(&WorkerId::new(worker)).await }).await
}

pub(super) async fn needs(Asked(api, control): Asked, RawQuery(query): RawQuery) -> Response {
    let models: Vec<String> = values(query.as_deref(), "model").collect();
    api.json(async { control.needs(&models).await }).await
}

pub(super) async fn note_pools(Asked(api, control): Asked, Path(release): Named, body: Bytes) -> Response {
    let noted = async {
        let states: PoolStates = from_json(&body)?;
        if states.release != release {
            let message =
                format!("the pools of release `{}` were sent as those of `{release}`", states.release);
            return Err(ServiceError::new(ErrorCode::Invalid, message));
        }
        control.note_pools(states).await
    };
    api.done(noted).await
}

pub(super) async fn server_usage(Asked(api, control): Asked) -> Response {
    api.json(async { control.server_usage().await }).await
}

pub(super) async fn note_server_usage(Asked(api, control): Asked, body: Bytes) -> Response {
    api.done(async { control.note_server_usage(from_json(&body)?).await }).await
}

pub(super) async fn check(Asked(api, control): Asked) -> Response {
    api.json(async { control.check().await }).await
}

pub(super) async fn version(State(api): Shared) -> Response {
    api.json(async { Ok(Version { kgfleet: env!("CARGO_PKG_VERSION").to_owned() }) }).await
}

/// The values of a parameter of a query.
fn values<'a>(query: Option<&'a str>, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.filter(move |(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The value of a parameter that may be there once.
fn one<T: std::str::FromStr>(query: Option<&str>, name: &str, default: T) -> Result<T, ServiceError> {
    values(query, name).next().map_or(Ok(default), |value| parsed(name, &value))
}

fn parsed<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, ServiceError> {
    let message = || format!("`{name}` cannot be `{value}`");
    value.parse().map_err(|_| ServiceError::new(ErrorCode::Invalid, message()))
}
