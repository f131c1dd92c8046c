//! Says what is in the Secrets of a release: tokens with the identities behind them, and the password of its own Redis. Nothing is
//! sent or printed here.

use std::collections::BTreeMap;

use domain::caller::CallerRole;
use serde_json::{Value, json};

use crate::verbs::fleet::identity::{NewIdentity, random, token};

/// A Secret that is to be.
#[derive(Clone)]
pub struct SecretObject {
    name: String,
    kind: &'static str,
    texts: BTreeMap<&'static str, String>,
    annotations: BTreeMap<&'static str, String>,
}

impl SecretObject {
    pub fn new(name: String, kind: &'static str) -> Self {
        Self { name, kind, texts: BTreeMap::new(), annotations: BTreeMap::new() }
    }

    pub fn with(mut self, key: &'static str, text: impl Into<String>) -> Self {
        self.texts.insert(key, text.into());
        self
    }

    pub fn annotated(mut self, key: &'static str, text: impl Into<String>) -> Self {
        self.annotations.insert(key, text.into());
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// As the API of Kubernetes takes it; with the version that it replaces.
    pub fn manifest(&self, replaces: Option<&str>) -> Value {
        let mut metadata = json!({
            "name": self.name,
            "labels": {"app.kubernetes.io/part-of": "kgfleet", "app.kubernetes.io/managed-by": "kgfleet"},
            "annotations": self.annotations,
        });
        if let Some(version) = replaces {
            metadata["resourceVersion"] = json!(version);
        }
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": self.kind, "stringData": self.texts})
    }
}

/// The tokens of workers and operators, and the identities behind them.
pub fn auth(prefix: &str) -> anyhow::Result<SecretObject> {
    let (worker, operator) = (token()?, token()?);
    let own = format!("{prefix}-*");
    let workers = NewIdentity { workers: Some(&own), ..identity("workers", &[CallerRole::Worker]) };
    let operators = identity("operator", &[CallerRole::Operator]);
    let identities = workers.entry(&worker) + "\n" + &operators.entry(&operator);
    let secret = SecretObject::new(format!("{prefix}-auth"), "Opaque");
    Ok(secret.with("worker.token", worker).with("operator.token", operator).with("tokens.toml", identities))
}

/// The token of the conductor, and the identity behind it. By itself, because the Secret of an older release lacks it.
pub fn conductor(prefix: &str) -> anyhow::Result<SecretObject> {
    let token = token()?;
    let identities = identity("conductor", &[CallerRole::Conductor]).entry(&token);
    let secret = SecretObject::new(format!("{prefix}-conductor"), "Opaque");
    Ok(secret.with("conductor.token", token).with("identities.toml", identities))
}

fn identity<'a>(name: &'a str, roles: &'a [CallerRole]) -> NewIdentity<'a> {
    NewIdentity { name, roles, ..NewIdentity::default() }
}

/// The password of the release's own Redis, and who needs it in which form.
pub fn queue(prefix: &str, host: &str) -> anyhow::Result<SecretObject> {
    let password = random()?;
    let secret = SecretObject::new(format!("{prefix}-queue"), "Opaque");
    let url = format!("redis://:{password}@{host}:6379/0");
    let settings = format!(
        "port 6379\ndir /data\nrequirepass {password}\nappendonly yes\nmaxmemory-policy noeviction\n"
    );
    Ok(secret.with("url", url).with("redis.conf", settings).with("password", password))
}

#[cfg(test)]
mod tests {
    use proto::server::{Identities, hash_of_token};

    use super::*;

    #[test]
    fn tokens_are_those_of_the_identities_and_never_the_same() {
        let (one, two) = (auth("bench").unwrap(), auth("bench").unwrap());
        assert_ne!(one.texts["worker.token"], two.texts["worker.token"]);
        assert_ne!(one.texts["worker.token"], one.texts["operator.token"]);
        let identities = &one.texts["tokens.toml"];
        Identities::parse(identities).unwrap();
        for key in ["worker.token", "operator.token"] {
            assert!(identities.contains(&hash_of_token(&one.texts[key])), "{key}");
            assert!(!identities.contains(&one.texts[key]), "{key} stands in the file of identities");
        }
        assert_eq!(Identities::list(identities).unwrap()[0].workers.as_deref(), Some("bench-*"));
    }

    #[test]
    fn a_conductor_has_its_own_role_and_no_other() {
        let secret = conductor("bench").unwrap();
        let listed = Identities::list(&secret.texts["identities.toml"]).unwrap();
        let roles: Vec<&str> = listed[0].roles.iter().map(|role| role.as_str()).collect();
        assert_eq!((listed.len(), roles), (1, vec!["conductor"]));
    }

    #[test]
    fn redis_and_its_callers_have_one_password() {
        let secret = queue("bench", "bench-redis.ns.svc").unwrap();
        let password = &secret.texts["password"];
        assert!(secret.texts["redis.conf"].contains(&format!("requirepass {password}\n")));
        assert_eq!(secret.texts["url"], format!("redis://:{password}@bench-redis.ns.svc:6379/0"));
        assert_eq!(secret.manifest(None)["metadata"]["name"], "bench-queue");
    }
}
