//! What [news](News) changes about the servers.

use domain::machine;
use models::ServedModel;
use models::openai::named;
use tokio::time::Instant;

use super::{Endpoint, News, ServerKey, Servers, at_address};
use crate::connect::list;

impl Servers {
    /// Processes news.
    pub fn apply(&mut self, news: News, now: Instant) {
        match news {
            News::Listed { endpoint, models } => {
                (self.no_addresses, self.restarting) = (None, None);
                self.listed(endpoint, models);
            }
            News::Unlisted { endpoint, reason } => {
                (self.no_addresses, self.restarting) = (None, None);
                let remark = format!("its list of models cannot be used ({reason})");
                self.answers(endpoint, Vec::new(), None, Some(remark));
            }
            News::Unreachable { endpoint, reason } => {
                self.no_addresses = None;
                let state = self.endpoints.entry(endpoint.clone()).or_default();
                state.silent_since.get_or_insert(now);
                state.loads = None;
                at_address(&mut self.servers, &endpoint).for_each(|(_, server)| {
                    server.limiter.untold();
                    // Whoever comes back may be another one.
                    server.first.begin_again();
                });
                let since = *state.since.get_or_insert_with(machine::now);
                let since = since.strftime("%H:%M:%S UTC");
                state.trouble = Some(match state.models {
                    None => format!("waiting for {endpoint}: {reason} (since {since})"),
                    Some(_) => format!("{endpoint} does not answer any more: {reason} (since {since})"),
                });
            }
            News::Removed { endpoint } => {
                self.endpoints.remove(&endpoint);
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
            News::Restarting { reason } => self.restarting = Some(reason),
            News::Lost { reason } => self.lost = Some(reason),
        }
        self.servers.retain(|key, server| match key {
            ServerKey::Found { endpoint, .. } => {
                server.in_flight > 0 || self.endpoints.contains_key(endpoint)
            }
            ServerKey::Hosted { .. } => true,
        });
    }

    fn listed(&mut self, endpoint: String, listed: Vec<ServedModel>) {
        let names = list(listed.iter().map(|model| model.id.as_str()));
        let wanted = match self.expected.is_empty() {
            true => listed,
            false => {
                let mut wanted: Vec<ServedModel> =
                    self.expected.iter().filter_map(|name| named(&listed, name).cloned()).collect();
                wanted.dedup();
                wanted
            }
        };
        let (mut models, mut trouble) = (Vec::new(), None);
        for model in wanted {
            // Servers that do not report the model behind a name are trusted.
            let root = model.root.clone().unwrap_or_else(|| model.id.clone());
            let first = self.roots.entry(model.id.clone()).or_insert_with(|| root.clone());
            if *first == root {
                models.push(model);
            } else {
                let name = &model.id;
                trouble = Some(format!(
                    "{endpoint} serves {root} under the name {name}, which stood for {first} before: it is not \
                     asked. Serve it under another name, or restart this worker if {root} is meant"
                ));
            }
        }
        let mistaken = trouble.is_some();
        let expected = self.expected.join(", ");
        let before = self.endpoints.get(&endpoint).and_then(|state| state.models.as_ref());
        let gone = before.into_iter().flatten().find(|old| models.iter().all(|model| model.id != old.id));
        if let Some(gone) = gone.filter(|_| !mistaken) {
            tracing::warn!(
                endpoint,
                model = gone.id,
                serves = names,
                "the server serves another model; units of the old one are given back"
            );
        }
        if models.is_empty() && !mistaken && self.expected.iter().any(|name| self.was_listed(name)) {
            trouble = Some(format!(
                "{endpoint} serves {names}, and this worker was told to expect {expected}. Start the server with \
                 `--served-model-name` and that name, correct --model, or leave --model out to take whatever is served"
            ));
        }
        let lacks = models.is_empty() && trouble.is_none();
        let remark = lacks.then(|| format!("its list of models lacks {expected}; it names {names}"));
        self.answers(endpoint.clone(), models, trouble, remark);
        self.endpoints.entry(endpoint).or_default().mistaken = mistaken;
    }

    /// An address answers, and serves these models by its list.
    fn answers(
        &mut self,
        endpoint: String,
        models: Vec<ServedModel>,
        trouble: Option<String>,
        remark: Option<String>,
    ) {
        let state = self.endpoints.entry(endpoint.clone()).or_default();
        if let Some(remark) = remark.as_ref().filter(|remark| state.remark.as_ref() != Some(*remark)) {
            tracing::warn!(
                endpoint,
                remark,
                "the first question will show which models the server answers for"
            );
        }
        let (loads, version) = (state.loads.take(), state.version.take());
        *state = Endpoint { models: Some(models), trouble, remark, loads, version, ..Endpoint::default() };
    }
}
