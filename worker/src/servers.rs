//! The servers that a worker knows: a plain state machine that takes news and the time. It makes no call itself: `discovery`
//! sends the news, and the loop in `work` applies it, asks which servers are free, and notes when dialogues begin and end.
//!
//! A *server* is one model name at one address, or one model at a provider. Each has its own limit on dialogues in
//! flight, shared by all runs. Discovered servers may come and go at any time, and one may restart with another model
//! under the old name. The server is then reported as mistaken, and the other model gets no dialogues.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use domain::exchange::{ANY_MODEL, UNIT_DIALOGUES_MAX};
use domain::model_name::is_listed_as;
use domain::{Connector, InFlightBounds, MadeAt, ModelHome, ModelSpec, WorkerId};
use jiff::Timestamp;
use models::openai::named;
use models::{Secret, ServedModel};
use reqwest::Url;
use tokio::time::Instant;

use crate::connect::{FoundServer, key_name};
use crate::first::FirstQuestion;
use crate::limiter::{LimitReason, Limiter, LoadLook};
use crate::metrics::ServerSight;
use crate::vllm::Loads;

mod first_questions;
mod news;

/// After this much silence a server is given up: its leased dialogues go to others.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(60);

/// Identifies a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerKey {
    /// A model discovered at an address.
    Found {
        /// The address.
        endpoint: String,
        /// Its name there.
        model: String,
    },
    /// A model at the address of a configuration or a provider.
    Hosted {
        connector: Connector,
        /// Name of the key: different keys have different limits.
        key: String,
        /// The address, if the configuration gives one.
        endpoint: Option<String>,
        /// The requested name.
        model: String,
    },
}

impl ServerKey {
    /// The server of a model that is not discovered.
    pub fn hosted(spec: &ModelSpec) -> Self {
        Self::Hosted {
            connector: spec.connector,
            key: key_name(spec),
            endpoint: spec.endpoint.clone(),
            model: spec.requested().to_owned(),
        }
    }

    /// The name of the model there.
    pub fn model(&self) -> &str {
        match self {
            Self::Found { model, .. } | Self::Hosted { model, .. } => model,
        }
    }

    /// The address at which the server may tell its load.
    pub fn load_address(&self) -> Option<&str> {
        match self {
            Self::Found { endpoint, .. } => Some(endpoint),
            Self::Hosted { connector: Connector::OpenaiCompatible, endpoint, .. } => endpoint.as_deref(),
            Self::Hosted { .. } => None,
        }
    }
}

/// News about an address.
#[derive(Clone, Debug)]
pub enum News {
    /// It answers, and lists these models.
    Listed {
        /// The address.
        endpoint: String,
        models: Vec<ServedModel>,
    },
    /// It answers, and has no list of models that can be used.
    Unlisted { endpoint: String, reason: String },
    /// It does not answer properly.
    Unreachable {
        /// The address.
        endpoint: String,
        reason: String,
    },
    /// Discovery does not find this address any more.
    Removed {
        /// The address.
        endpoint: String,
    },
    /// It answered a query of its load.
    Load {
        /// The address.
        endpoint: String,
        loads: Loads,
    },
    /// No address is known, and why.
    NoAddresses { reason: String },
    /// It said its version.
    Version {
        /// The address.
        endpoint: String,
        version: String,
    },
    /// The server that the worker started itself has ended, and starts again.
    Restarting { reason: String },
    /// The server that the worker started itself has ended for good.
    Lost { reason: String },
}

#[derive(Debug, Default)]
struct Endpoint {
    /// `None` until its first answer.
    models: Option<Vec<ServedModel>>,
    silent_since: Option<Instant>,
    /// The same by the time of day.
    since: Option<Timestamp>,
    trouble: Option<String>,
    /// What is unusual about its list of models.
    remark: Option<String>,
    /// Whether it serves another model under the name of one that it served before.
    mistaken: bool,
    /// What it last said of its load.
    loads: Option<Loads>,
    version: Option<String>,
}

impl Endpoint {
    /// Whether it answers, and has no list of models that can be used.
    fn is_unlisted(&self) -> bool {
        self.remark.is_some() && self.models.as_ref().is_some_and(Vec::is_empty)
    }
}

#[derive(Debug)]
struct Server {
    limiter: Limiter,
    in_flight: u32,
    first: FirstQuestion,
    /// What is unusual about its list of models, if a configuration names it.
    remark: Option<String>,
}

impl Server {
    fn is_first(&self) -> bool {
        self.first.most().is_some()
    }

    /// Dialogues in flight at most.
    fn limit(&self) -> u32 {
        let limit = self.limiter.limit() as u32;
        self.first.most().map_or(limit, |most| most.min(limit))
    }

    /// Why the limit has its present value.
    fn reason(&self) -> LimitReason {
        if self.is_first() { LimitReason::FirstQuestion } else { self.limiter.reason(self.in_flight) }
    }

    /// Notes the look that its limit needs.
    fn want_look(&self, key: &ServerKey, looks: &mut BTreeMap<String, LoadLook>) {
        if let (Some(look), Some(address)) = (self.limiter.look(self.in_flight), key.load_address()) {
            let soonest = looks.entry(address.to_owned()).or_insert(look);
            *soonest = look.min(*soonest);
        }
    }
}

/// All servers of a worker.
#[derive(Debug, Default)]
pub struct Servers {
    /// The worker's name, which stands for its machine where an address does not.
    worker: String,
    /// Models that must be served; any if empty.
    expected: Vec<String>,
    /// Dialogues in flight per server, instead of adapting.
    concurrency: Option<u32>,
    key: Option<Secret>,
    endpoints: BTreeMap<String, Endpoint>,
    servers: BTreeMap<ServerKey, Server>,
    /// Addresses whose load should be known soon.
    looks: BTreeMap<String, LoadLook>,
    /// The model behind each name when it was first seen.
    roots: BTreeMap<String, String>,
    no_addresses: Option<String>,
    /// Why the worker's own server ended, until it answers again.
    restarting: Option<String>,
    /// Why it does not start again.
    lost: Option<String>,
}

impl Servers {
    /// Without servers. `key` is sent to discovered servers if a configuration names no other.
    pub fn new(
        worker: &WorkerId,
        expected: Vec<String>,
        concurrency: Option<u32>,
        key: Option<Secret>,
    ) -> Self {
        Self { worker: worker.to_string(), expected, concurrency, key, ..Self::default() }
    }

    /// Knows these addresses before any of them answers.
    pub fn at(mut self, addresses: &[String]) -> Self {
        self.endpoints = addresses.iter().map(|address| (address.clone(), Endpoint::default())).collect();
        self
    }

    /// What metrics call a server: its model, and where it is.
    pub fn label(&self, key: &ServerKey) -> String {
        match key {
            ServerKey::Found { endpoint, model } => format!("{model} at {}", self.place(endpoint)),
            ServerKey::Hosted { key, model, .. } => format!("{model} by {key}"),
        }
    }

    /// Where an address is. Servers of many machines have the same loopback address: there the worker stands for its
    /// machine, with the port if it has several servers there.
    fn place(&self, endpoint: &str) -> String {
        let Some(port) = loopback_port(endpoint) else { return endpoint.to_owned() };
        let here = self.endpoints.keys().filter(|known| loopback_port(known).is_some());
        match here.take(2).count() {
            0 | 1 => self.worker.clone(),
            _ => format!("{}:{port}", self.worker),
        }
    }

    /// Names of the models served now; [`ANY_MODEL`] for those that no list names.
    pub fn models(&self, now: Instant) -> BTreeSet<String> {
        let there = || self.endpoints.values().filter(|endpoint| !given_up(endpoint, now));
        let listed = there().flat_map(|endpoint| endpoint.models.iter().flatten());
        let mut models: BTreeSet<String> = listed.map(|model| model.id.clone()).collect();
        if self.expected.is_empty() {
            models.extend(there().any(Endpoint::is_unlisted).then(|| ANY_MODEL.to_owned()));
        } else if there().any(|endpoint| endpoint.models.is_some() && !endpoint.mistaken) {
            let unlisted = self.expected.iter().filter(|name| !self.was_listed(name));
            models.extend(unlisted.cloned().collect::<Vec<_>>());
        }
        models
    }

    /// Whether a server's list has ever named this model.
    fn was_listed(&self, asked: &str) -> bool {
        self.roots.keys().any(|known| is_listed_as(known, asked))
    }

    /// The available servers of a model: those whose lists name it, otherwise those that may answer for it all the same.
    pub fn of_model(&self, asked: &str, now: Instant) -> Vec<ServerKey> {
        let there = || self.endpoints.iter().filter(|(_, endpoint)| !given_up(endpoint, now));
        let key = |endpoint: &String, model: &str| ServerKey::Found {
            endpoint: endpoint.clone(),
            model: model.to_owned(),
        };
        let listed = there().filter_map(|(address, endpoint)| {
            let served = named(endpoint.models.as_ref()?, asked)?;
            Some((served.id == asked, key(address, &served.id)))
        });
        let listed: Vec<(bool, ServerKey)> = listed.collect();
        let is_exact = listed.iter().any(|(is_exact, _)| *is_exact);
        let mut found: Vec<ServerKey> =
            listed.into_iter().filter(|(exact, _)| *exact || !is_exact).map(|(_, key)| key).collect();
        if found.is_empty() && !self.was_listed(asked) {
            let may_answer = |endpoint: &Endpoint| match self.expected.is_empty() {
                true => endpoint.is_unlisted(),
                false => endpoint.models.is_some() && !endpoint.mistaken,
            };
            let is_expected =
                self.expected.is_empty() || self.expected.iter().any(|name| is_listed_as(name, asked));
            let others = there().filter(|(_, endpoint)| is_expected && may_answer(endpoint));
            found.extend(others.map(|(address, _)| key(address, asked)));
        }
        found.retain(|key| self.servers.get(key).is_none_or(|server| !server.first.is_left_alone(now)));
        found
    }

    /// Whether questions about this model go to servers whose lists do not name it.
    pub fn is_unlisted(&self, asked: &str) -> bool {
        self.expected.is_empty() && !self.was_listed(asked)
    }

    /// How to connect to a discovered server.
    pub fn found(&self, key: &ServerKey) -> Option<FoundServer> {
        let ServerKey::Found { endpoint, model } = key else { return None };
        let mut models = self.endpoints.get(endpoint)?.models.as_ref()?.iter();
        Some(FoundServer {
            endpoint: endpoint.clone(),
            key: self.key.clone(),
            context_tokens: models.find(|served| served.id == *model).and_then(|served| served.max_model_len),
        })
    }

    /// Where records of a server are made, with what it says of itself.
    pub fn made_at(&self, key: &ServerKey, made_at: MadeAt) -> MadeAt {
        let ServerKey::Found { endpoint, model } = key else { return made_at.bounded() };
        let Some(endpoint) = self.endpoints.get(endpoint) else { return made_at.bounded() };
        let served = endpoint.models.iter().flatten().find(|served| served.id == *model);
        let weights = served.and_then(|served| served.root.clone());
        let revision =
            made_at.revision.or_else(|| weights.as_deref().and_then(revision_of).map(str::to_owned));
        let server_version = endpoint.version.clone();
        MadeAt { server_version, weights, revision, ..made_at }.bounded()
    }

    /// Starts tracking a server; `concurrency` is the model's setting. What answers in this process is asked all at once.
    pub fn open(&mut self, key: &ServerKey, concurrency: Option<u32>) {
        let fixed = self.concurrency.or(concurrency);
        let bounds = match (fixed, key) {
            (Some(fixed), _) => InFlightBounds::fixed(fixed.max(1)),
            (None, ServerKey::Hosted { connector, .. }) => connector.provider().in_flight,
            (None, ServerKey::Found { .. }) => InFlightBounds::OWN_SERVER,
        };
        match self.servers.get_mut(key) {
            Some(server) if fixed.is_some() => server.limiter.set_bounds(bounds),
            Some(_) => {}
            None => {
                let mut limiter = Limiter::new(bounds);
                let loads =
                    key.load_address().and_then(|address| self.endpoints.get(address)?.loads.as_ref());
                if let Some(loads) = loads {
                    limiter.told(loads.of(key.model()).occupancy(), 0);
                }
                let is_here = matches!(key, ServerKey::Hosted { connector, .. } if connector.provider().home == ModelHome::Process);
                let first = if is_here { FirstQuestion::skipped() } else { FirstQuestion::default() };
                self.servers.insert(key.clone(), Server { limiter, in_flight: 0, first, remark: None });
            }
        }
    }

    /// Dialogues that a server can take now.
    pub fn free(&self, key: &ServerKey) -> u32 {
        let answers = match key {
            ServerKey::Hosted { .. } => true,
            ServerKey::Found { endpoint, .. } => self
                .endpoints
                .get(endpoint)
                .is_some_and(|endpoint| endpoint.silent_since.is_none() && endpoint.models.is_some()),
        };
        if answers { self.limit(key).saturating_sub(self.in_flight(key)) } else { 0 }
    }

    /// Maximum number of concurrent dialogues of a server: until one was answered, that of first questions.
    pub fn limit(&self, key: &ServerKey) -> u32 {
        self.servers.get(key).map_or(1, Server::limit)
    }

    /// Dialogues in flight at a server.
    pub fn in_flight(&self, key: &ServerKey) -> u32 {
        self.servers.get(key).map_or(0, |server| server.in_flight)
    }

    /// Dialogues to lease ahead, so that a slot never waits for a lease: one unit, or a quarter of the limit if
    /// dialogues end faster than units arrive, and at most the limit.
    pub fn prefetch(&self, key: &ServerKey) -> u32 {
        let limit = self.servers.get(key).map_or_else(
            || self.concurrency.unwrap_or(InFlightBounds::OWN_SERVER.start),
            |server| server.limiter.limit() as u32,
        );
        (limit / 4).max(UNIT_DIALOGUES_MAX).min(limit)
    }

    /// Records the start of a dialogue.
    pub fn begin(&mut self, key: &ServerKey) {
        if let Some(server) = self.servers.get_mut(key) {
            server.in_flight += 1;
            server.want_look(key, &mut self.looks);
        }
    }

    /// Records the end of a dialogue; `refused` if the server reported overload, `None` if the dialogue was stopped
    /// and says nothing.
    pub fn ended(&mut self, key: &ServerKey, refused: Option<bool>) {
        let Some(server) = self.servers.get_mut(key) else { return };
        server.in_flight = server.in_flight.saturating_sub(1);
        if let Some(refused) = refused {
            server.limiter.ended(refused, server.in_flight as usize);
            server.want_look(key, &mut self.looks);
        }
    }

    /// The addresses whose load should be known soon, once each.
    pub fn take_looks(&mut self) -> BTreeMap<String, LoadLook> {
        std::mem::take(&mut self.looks)
    }

    /// The address of a server that is not discovered, if its limit follows its load.
    pub fn load_to_follow<'k>(&self, key: &'k ServerKey) -> Option<&'k str> {
        let is_hosted = matches!(key, ServerKey::Hosted { .. });
        let adapts = self.servers.get(key).is_some_and(|server| server.limiter.adapts());
        key.load_address().filter(|_| is_hosted && adapts)
    }

    /// Wants to know the loads of busy servers that are not discovered: nobody reads them at even distances.
    pub fn look_at_hosted(&mut self) {
        let busy = self.servers.iter().filter(|(_, server)| server.in_flight > 0);
        let addresses = busy.filter_map(|(key, _)| self.load_to_follow(key)).map(str::to_owned);
        for address in addresses.collect::<Vec<_>>() {
            self.looks.entry(address).or_insert(LoadLook::Settled);
        }
    }

    /// Every server with its limit, and why the limit has its present value.
    pub fn limits(&self) -> impl Iterator<Item = (&ServerKey, u32, LimitReason)> {
        self.servers.iter().map(|(key, server)| (key, server.limit(), server.reason()))
    }

    /// Every known server, for metrics.
    pub fn sights(&self) -> Vec<ServerSight> {
        let mut sights = Vec::new();
        for (address, endpoint) in &self.endpoints {
            let listed = endpoint.models.iter().flatten();
            let found = |model: &str| ServerKey::Found { endpoint: address.clone(), model: model.to_owned() };
            let mut keys: Vec<ServerKey> = listed.map(|model| found(&model.id)).collect();
            let asked = self.servers.keys().filter(|key| **key == found(key.model()) && !keys.contains(key));
            keys.extend(asked.cloned().collect::<Vec<_>>());
            if keys.is_empty() {
                // One that loads has the name that it will have.
                let serves = match &self.expected[..] {
                    [only] if !endpoint.mistaken => only.as_str(),
                    _ => "",
                };
                let place = self.place(address);
                sights.push(ServerSight {
                    name: if serves.is_empty() { place } else { format!("{serves} at {place}") },
                    serves: serves.to_owned(),
                    is_up: Some(endpoint.models.is_some() && endpoint.silent_since.is_none()),
                    is_mistaken: endpoint.mistaken,
                    ..ServerSight::default()
                });
            }
            sights.extend(keys.iter().map(|key| ServerSight {
                is_up: Some(endpoint.silent_since.is_none()),
                is_mistaken: endpoint.mistaken,
                load: endpoint.loads.as_ref().map(|loads| *loads.of(key.model())),
                ..self.sight(key)
            }));
        }
        let hosted = self.servers.keys().filter(|key| matches!(key, ServerKey::Hosted { .. }));
        sights.extend(hosted.map(|key| self.sight(key)));
        sights
    }

    fn sight(&self, key: &ServerKey) -> ServerSight {
        ServerSight {
            name: self.label(key),
            serves: key.model().to_owned(),
            limit: self.limit(key),
            in_flight: self.in_flight(key),
            reason: self.servers.get(key).map(Server::reason),
            ..ServerSight::default()
        }
    }

    /// Whether no server has answered yet, so that all of them may be loading.
    pub fn are_loading(&self) -> bool {
        self.endpoints.values().all(|endpoint| endpoint.models.is_none())
    }

    /// Whether no address of a server is known.
    pub fn has_none(&self) -> bool {
        self.endpoints.is_empty()
    }

    /// Whether any server answers.
    pub fn any_answers(&self) -> bool {
        let answers = |endpoint: &Endpoint| endpoint.models.is_some() && endpoint.silent_since.is_none();
        self.endpoints.values().any(answers)
    }

    /// Why the worker's own server ended, until it answers again.
    pub fn own_trouble(&self) -> Option<String> {
        self.lost.clone().or_else(|| self.restarting.clone())
    }

    /// Why the worker's own server has ended for good, if so.
    pub fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    /// The current problem, if any.
    pub fn trouble(&self) -> Option<String> {
        if let Some(trouble) = self.own_trouble() {
            return Some(trouble);
        }
        let endpoints = self.endpoints.values().find_map(|endpoint| endpoint.trouble.clone());
        let mut turned_away = self.servers.values().filter_map(|server| server.first.trouble());
        let turned_away = || turned_away.next().map(str::to_owned);
        endpoints.or_else(turned_away).or_else(|| self.no_addresses.clone())
    }
}

/// The servers that tell their load at this address.
fn at_address<'s>(
    servers: &'s mut BTreeMap<ServerKey, Server>,
    address: &str,
) -> impl Iterator<Item = (&'s ServerKey, &'s mut Server)> {
    servers.iter_mut().filter(move |(key, _)| key.load_address() == Some(address))
}

/// The port of a loopback address; `None` for others.
fn loopback_port(endpoint: &str) -> Option<u16> {
    let url = Url::parse(endpoint).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_loopback = host.parse().map_or(host == "localhost", |address: IpAddr| address.is_loopback());
    is_loopback.then(|| url.port_or_known_default()).flatten()
}

/// The revision in the path of weights as the hub's cache keeps them: `…/snapshots/REVISION`.
fn revision_of(weights: &str) -> Option<&str> {
    let (_, rest) = weights.split_once("/snapshots/")?;
    rest.split('/').next().filter(|revision| !revision.is_empty())
}

fn given_up(endpoint: &Endpoint, now: Instant) -> bool {
    endpoint.silent_since.is_some_and(|since| now.duration_since(since) >= GIVEN_UP_AFTER)
}

#[cfg(test)]
mod tests;
