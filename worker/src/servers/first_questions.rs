//! What [first questions](crate::first) show about the servers.

use tokio::time::Instant;

use super::{Server, ServerKey, Servers};

impl Servers {
    /// A server has answered a question.
    pub fn answered(&mut self, key: &ServerKey) {
        if let Some(server) = self.servers.get_mut(key).filter(|server| server.is_first()) {
            server.first.answered();
            tracing::info!(server = self.label(key), "the first question is answered; others follow");
        }
    }

    /// Whether no question was answered there yet.
    pub fn is_first(&self, key: &ServerKey) -> bool {
        self.servers.get(key).is_some_and(Server::is_first)
    }

    /// Whether first questions are under way.
    pub fn are_first_asked(&self) -> bool {
        self.servers.values().any(|server| server.is_first() && server.in_flight > 0)
    }

    /// A question failed before any was answered.
    pub fn failed_first(&mut self, key: &ServerKey) {
        if let Some(server) = self.servers.get_mut(key) {
            server.first.failed();
        }
    }

    /// The next questions to these servers are first ones again.
    pub fn begin_again(&mut self, keys: &[ServerKey]) {
        for key in keys {
            if let Some(server) = self.servers.get_mut(key) {
                server.first.begin_again();
            }
        }
    }

    /// Leaves a server alone that turns a model away which others answer for.
    pub fn leave_alone(&mut self, key: &ServerKey, why: &str, now: Instant) {
        let name = self.label(key);
        if let Some(server) = self.servers.get_mut(key) {
            let seconds = server.first.leave_alone(format!("{name} is not asked: {why}"), now).as_secs();
            tracing::warn!(server = name, reason = why, seconds, "the server is not asked for a while");
        }
    }

    /// What is unusual about the list of models of a configured address, for the reasons that people read.
    pub fn remarked(&mut self, key: &ServerKey, remark: Option<String>) {
        if let Some(server) = self.servers.get_mut(key) {
            server.remark = remark;
        }
    }

    /// A reason for not asking a server, with what is unusual about its list of models.
    pub fn with_remark(&self, key: &ServerKey, why: &str) -> String {
        let of_server = || self.servers.get(key)?.remark.clone();
        let of_address = || match key {
            ServerKey::Found { endpoint, .. } => self.endpoints.get(endpoint)?.remark.clone(),
            ServerKey::Hosted { .. } => None,
        };
        match of_server().or_else(of_address) {
            Some(remark) => format!("{why}; {remark}"),
            None => why.to_owned(),
        }
    }
}
