//! The servers that a worker knows: a plain state machine that takes news and the time. It makes no call itself: `discovery`
//! sends the news, and the loop in `work` applies it, asks which servers are free, and notes when dialogues begin and end.
//!
//! A *server* is one model name at one address, or one model at a provider. Each has its own limit on dialogues in
//! flight, shared by all runs. Discovered servers may come and go at any time, and one may restart with another model
//! under the old name. The server is then reported as mistaken, and the other model gets no dialogues.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use domain::exchange::UNIT_DIALOGUES_MAX;
use domain::{CanaryPrint, Connector, InFlightBounds, MadeAt, ModelSpec, WorkerId};
use models::{Secret, ServedModel};
use reqwest::Url;
use tokio::time::Instant;

use crate::connect::{FoundServer, key_name, list};
use crate::likeness::Likeness;
use crate::limiter::{LimitReason, Limiter, LoadLook};
use crate::metrics::ServerSight;
use crate::vllm::Loads;

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
    /// It has loaded a model, and answers the canary prompts so; `None` if it does not.
    Canaries { endpoint: String, model: String, print: Option<CanaryPrint> },
    /// The server that the worker started itself has ended, and starts again.
    Restarting { reason: String },
    /// The server that the worker started itself has ended for good.
    Lost { reason: String },
}

/// A server serves none of the models that it is expected to serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{endpoint} serves {served}, and this worker was told to expect {expected}. Start the server with \
     `--served-model-name` and that name, correct --model, or leave --model out to take whatever is served"
)]
pub struct WrongModel {
    endpoint: String,
    served: String,
    expected: String,
}

#[derive(Debug, Default)]
struct Endpoint {
    /// `None` until its first answer.
    models: Option<Vec<ServedModel>>,
    silent_since: Option<Instant>,
    trouble: Option<String>,
    /// Whether it serves another model under the name of one that it served before.
    mistaken: bool,
    /// What it last said of its load.
    loads: Option<Loads>,
    version: Option<String>,
}

#[derive(Debug)]
struct Server {
    limiter: Limiter,
    in_flight: u32,
}

impl Server {
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
    likeness: Likeness,
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

    /// Processes news.
    ///
    /// # Errors
    /// An address does not serve the expected models at its first answer. Later this is only a problem to report,
    /// because the server was right before.
    pub fn apply(&mut self, news: News, now: Instant) -> Result<(), WrongModel> {
        match news {
            News::Listed { endpoint, models } => {
                (self.no_addresses, self.restarting) = (None, None);
                self.listed(endpoint, models)?;
            }
            News::Unreachable { endpoint, reason } => {
                self.no_addresses = None;
                let state = self.endpoints.entry(endpoint.clone()).or_default();
                state.silent_since.get_or_insert(now);
                state.loads = None;
                at_address(&mut self.servers, &endpoint).for_each(|(_, server)| server.limiter.untold());
                state.trouble = Some(match state.models {
                    None => format!("waiting for {endpoint}: {reason}"),
                    Some(_) => format!("{endpoint} does not answer any more: {reason}"),
                });
            }
            News::Removed { endpoint } => {
                self.endpoints.remove(&endpoint);
                self.likeness.removed(&endpoint);
            }
            News::Load { endpoint, loads } => {
                for (key, server) in at_address(&mut self.servers, &endpoint) {
                    server.limiter.told(loads.of(key.model()).occupancy(), server.in_flight);
                    server.want_look(key, &mut self.looks);
                }
                if let Some(state) = self.endpoints.get_mut(&endpoint) {
                    state.loads = Some(loads);
                }
            }
            News::NoAddresses { reason } => self.no_addresses = Some(reason),
            News::Version { endpoint, version } => {
                self.endpoints.entry(endpoint).or_default().version = Some(version);
            }
            News::Canaries { endpoint, model, print } => {
                self.endpoints.entry(endpoint.clone()).or_default();
                let name = format!("{model} at {}", self.place(&endpoint));
                for unlike in self.likeness.loaded(&model, &endpoint, name, print) {
                    tracing::warn!("{unlike}");
                }
            }
            News::Restarting { reason } => self.restarting = Some(reason),
            News::Lost { reason } => self.lost = Some(reason),
        }
        self.servers.retain(|key, server| match key {
            ServerKey::Found { endpoint, .. } => {
                server.in_flight > 0 || self.endpoints.contains_key(endpoint)
            }
            ServerKey::Hosted { .. } => true,
        });
        Ok(())
    }

    fn listed(&mut self, endpoint: String, listed: Vec<ServedModel>) -> Result<(), WrongModel> {
        let names = list(listed.iter().map(|model| model.id.as_str()));
        let (mut models, mut trouble, mut mistaken) = (Vec::new(), None, false);
        for model in listed {
            if !self.expected.is_empty() && !self.expected.contains(&model.id) {
                continue;
            }
            // Servers that do not report the model behind a name are trusted.
            let root = model.root.clone().unwrap_or_else(|| model.id.clone());
            let first = self.roots.entry(model.id.clone()).or_insert_with(|| root.clone());
            if *first == root {
                models.push(model);
            } else {
                let name = &model.id;
                mistaken = true;
                trouble = Some(format!(
                    "{endpoint} serves {root} under the name {name}, which stood for {first} before: it is not \
                     asked. Serve it under another name, or restart this worker if {root} is meant"
                ));
            }
        }
        let state = self.endpoints.entry(endpoint.clone()).or_default();
        if models.is_empty() && trouble.is_none() {
            let wrong = WrongModel { endpoint, served: names, expected: self.expected.join(", ") };
            if !self.expected.is_empty() && state.models.is_none() {
                return Err(wrong);
            }
            trouble = Some(if self.expected.is_empty() {
                format!("{} serves no model", wrong.endpoint)
            } else {
                wrong.to_string()
            });
        } else if let Some(before) = &state.models
            && trouble.is_none()
            && let Some(gone) = before.iter().find(|old| models.iter().all(|model| model.id != old.id))
        {
            tracing::warn!(
                endpoint,
                model = gone.id,
                serves = names,
                "the server serves another model; units of the old one are given back"
            );
        }
        let (loads, version) = (state.loads.take(), state.version.take());
        *state = Endpoint { models: Some(models), silent_since: None, trouble, mistaken, loads, version };
        Ok(())
    }

    /// Names of the models served now.
    pub fn models(&self, now: Instant) -> BTreeSet<String> {
        let endpoints = self.endpoints.values().filter(|endpoint| !given_up(endpoint, now));
        endpoints
            .flat_map(|endpoint| endpoint.models.iter().flatten())
            .map(|model| model.id.clone())
            .collect()
    }

    /// The available servers of a model.
    pub fn of_model(&self, model: &str, now: Instant) -> Vec<ServerKey> {
        let serve = |endpoint: &&Endpoint| {
            !given_up(endpoint, now) && endpoint.models.iter().flatten().any(|served| served.id == model)
        };
        let found = self.endpoints.iter().filter(|(_, endpoint)| serve(endpoint));
        let key =
            |endpoint: &String| ServerKey::Found { endpoint: endpoint.clone(), model: model.to_owned() };
        found.map(|(endpoint, _)| key(endpoint)).collect()
    }

    /// How to connect to a discovered server.
    pub fn found(&self, key: &ServerKey) -> Option<FoundServer> {
        let ServerKey::Found { endpoint, model } = key else { return None };
        let models = self.endpoints.get(endpoint)?.models.as_ref()?;
        let served = models.iter().find(|served| served.id == *model)?;
        Some(FoundServer {
            endpoint: endpoint.clone(),
            key: self.key.clone(),
            context_tokens: served.max_model_len,
        })
    }

    /// Where records of a server are made, with what it says of itself.
    pub fn made_at(&self, key: &ServerKey, made_at: MadeAt) -> MadeAt {
        let ServerKey::Found { endpoint, model } = key else { return made_at.bounded() };
        let canary = self.likeness.print(model, endpoint).map(ToString::to_string);
        let Some(endpoint) = self.endpoints.get(endpoint) else { return made_at.bounded() };
        let served = endpoint.models.iter().flatten().find(|served| served.id == *model);
        let weights = served.and_then(|served| served.root.clone());
        let revision =
            made_at.revision.or_else(|| weights.as_deref().and_then(revision_of).map(str::to_owned));
        let server_version = endpoint.version.clone();
        MadeAt { server_version, weights, revision, canary, ..made_at }.bounded()
    }

    /// Starts tracking a server; `concurrency` is the model's setting.
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
                self.servers.insert(key.clone(), Server { limiter, in_flight: 0 });
            }
        }
    }

    /// Dialogues that a server can take now.
    pub fn free(&self, key: &ServerKey) -> u32 {
        let answers = match key {
            ServerKey::Hosted { .. } => true,
            ServerKey::Found { endpoint, model } => self.endpoints.get(endpoint).is_some_and(|endpoint| {
                endpoint.silent_since.is_none()
                    && endpoint.models.iter().flatten().any(|served| served.id == *model)
            }),
        };
        if answers { self.limit(key).saturating_sub(self.in_flight(key)) } else { 0 }
    }

    /// Maximum number of concurrent dialogues of a server; before it is tracked, the initial limit.
    pub fn limit(&self, key: &ServerKey) -> u32 {
        match self.servers.get(key) {
            Some(server) => server.limiter.limit() as u32,
            None => self.concurrency.unwrap_or(InFlightBounds::OWN_SERVER.start),
        }
    }

    /// Dialogues in flight at a server.
    pub fn in_flight(&self, key: &ServerKey) -> u32 {
        self.servers.get(key).map_or(0, |server| server.in_flight)
    }

    /// Dialogues to lease ahead, so that a slot never waits for a lease: one unit, or a quarter of the limit if
    /// dialogues end faster than units arrive, and at most the limit.
    pub fn prefetch(&self, key: &ServerKey) -> u32 {
        let limit = self.limit(key);
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
        self.servers.iter().map(|(key, server)| {
            let Server { limiter, in_flight } = server;
            (key, limiter.limit() as u32, limiter.reason(*in_flight))
        })
    }

    /// Every known server, for metrics.
    pub fn sights(&self) -> Vec<ServerSight<'_>> {
        let asked = |key: &ServerKey| self.servers.get(key);
        let mut sights: Vec<ServerSight<'_>> = Vec::new();
        for (address, endpoint) in &self.endpoints {
            for model in endpoint.models.iter().flatten() {
                let key = ServerKey::Found { endpoint: address.clone(), model: model.id.clone() };
                let server = asked(&key);
                sights.push(ServerSight {
                    name: self.label(&key),
                    serves: &model.id,
                    is_up: Some(endpoint.silent_since.is_none()),
                    is_mistaken: endpoint.mistaken,
                    limit: self.limit(&key),
                    in_flight: self.in_flight(&key),
                    reason: server.map(|server| server.limiter.reason(server.in_flight)),
                    load: endpoint.loads.as_ref().map(|loads| loads.of(&model.id)),
                });
            }
            if endpoint.models.as_ref().is_none_or(Vec::is_empty) {
                // One that loads has the name that it will have.
                let serves = match &self.expected[..] {
                    [only] if !endpoint.mistaken => only.as_str(),
                    _ => "",
                };
                let place = self.place(address);
                sights.push(ServerSight {
                    name: if serves.is_empty() { place } else { format!("{serves} at {place}") },
                    serves,
                    is_up: Some(endpoint.models.is_some() && endpoint.silent_since.is_none()),
                    is_mistaken: endpoint.mistaken,
                    limit: 0,
                    in_flight: 0,
                    reason: None,
                    load: None,
                });
            }
        }
        let hosted = self.servers.iter().filter(|(key, _)| matches!(key, ServerKey::Hosted { .. }));
        sights.extend(hosted.map(|(key, server)| ServerSight {
            name: self.label(key),
            serves: key.model(),
            is_up: None,
            is_mistaken: false,
            limit: server.limiter.limit() as u32,
            in_flight: server.in_flight,
            reason: Some(server.limiter.reason(server.in_flight)),
            load: None,
        }));
        sights
    }

    /// Which servers of a model answer alike.
    pub fn likeness(&self) -> &Likeness {
        &self.likeness
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
        endpoints.or_else(|| self.no_addresses.clone())
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
