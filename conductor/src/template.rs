//! The pool that a CronJob stands for, and the Jobs that are made of it. The chart writes the CronJob, suspended, with the
//! estimates of the pool in an annotation. A CronJob that contradicts itself is no pool: it is named as a problem, and none of
//! its servers is started or deleted.

use std::time::Duration;

use crate::pool::Pool;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::objects::{BatchJob, CronJob, POOL_LABEL, WORKER_CONTAINER};

/// The annotation with a [`PoolEstimate`] as JSON.
pub const ESTIMATE: &str = "kgfleet/estimate";

/// The annotation with the time of the last retry by hand: what failed before it does not count any more.
pub const RETRY: &str = "kgfleet/retry";

/// The annotation with the Job that fetches the weights of all pools and the index of this one, as `JOB/INDEX`.
pub const WEIGHTS: &str = "kgfleet/weights";

/// The annotation of a Job with the hash of the template that it was made of.
pub const TEMPLATE: &str = "kgfleet/template";

/// What a chart says of a pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolEstimate {
    /// GPUs of one part.
    gpus: u32,
    /// Nodes of one server.
    parts: u32,
    /// Servers at once, at most.
    servers: u32,
    load_seconds: f64,
    /// Of one server.
    dialogues_per_second: f64,
    dialogues: Option<u64>,
}

/// Why a CronJob is no pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cron_job}: {problem}")]
pub struct PoolTemplateError {
    pub cron_job: String,
    pub problem: String,
}

/// A pool with the Job that its servers are made of.
#[derive(Clone, Debug)]
pub struct PoolTemplate {
    pub pool: Pool,
    /// The name under which its servers serve the model.
    pub model: String,
    /// Dialogues that are to be expected of it, if that is known beforehand.
    pub dialogues: Option<u64>,
    /// Its CronJob, after which Jobs are named.
    pub cron_job: String,
    /// The uid of the CronJob.
    pub uid: String,
    template: Value,
    /// Hash of the template. Failures count for the template that they happened with, because another one may succeed.
    pub hash: String,
    /// What failed up to then does not count any more.
    pub retry_at: Option<Timestamp>,
    /// The Job that fetches its weights, and the index.
    pub weights: Option<(String, u32)>,
}

impl PoolTemplate {
    /// Reads it from its CronJob.
    ///
    /// # Errors
    /// Label, annotation or template are missing, or contradict each other.
    pub fn read(cron_job: &CronJob) -> Result<Self, PoolTemplateError> {
        let metadata = &cron_job.metadata;
        let fail = |problem: String| PoolTemplateError { cron_job: metadata.name.clone(), problem };
        let name = metadata.pool();
        if name.is_empty() {
            return Err(fail(format!("the label {POOL_LABEL} is missing")));
        }
        let text = (metadata.annotations.get(ESTIMATE))
            .ok_or_else(|| fail(format!("the annotation {ESTIMATE} is missing")))?;
        let estimate: PoolEstimate = serde_json::from_str(text)
            .map_err(|error| fail(format!("the annotation {ESTIMATE}: {error}")))?;
        estimate.check().map_err(|problem| fail(format!("the annotation {ESTIMATE}: {problem}")))?;
        let template = &cron_job.spec.job_template;
        let job = JobShape::read(template).map_err(fail)?;
        if job.parts != estimate.parts {
            return Err(fail(format!(
                "the annotation {ESTIMATE} says {} parts, the Job has {}",
                estimate.parts, job.parts
            )));
        }
        if let Some(gpus) = job.gpus.filter(|gpus| *gpus != estimate.gpus) {
            return Err(fail(format!(
                "the annotation {ESTIMATE} says {} GPUs of a part, the pod requests {gpus}",
                estimate.gpus
            )));
        }
        let retry_at = metadata.annotations.get(RETRY).map(|text| text.parse()).transpose();
        let retry_at =
            retry_at.map_err(|_| fail(format!("the annotation {RETRY} is no time in RFC 3339")))?;
        let weights = metadata.annotations.get(WEIGHTS).map(|text| weights_of(text)).transpose();
        let weights = weights.map_err(fail)?;
        let pool = Pool {
            name: name.to_owned(),
            parts: estimate.parts,
            gpus: estimate.gpus,
            servers_max: estimate.servers,
            load: Duration::from_secs_f64(estimate.load_seconds),
            rate: estimate.dialogues_per_second,
        };
        Ok(Self {
            pool,
            model: job.model,
            dialogues: estimate.dialogues,
            cron_job: metadata.name.clone(),
            uid: metadata.uid.clone(),
            hash: short_hash(template),
            template: template.clone(),
            retry_at,
            weights,
        })
    }

    /// The name of a server.
    pub fn job_name(&self, number: u32) -> String {
        format!("{}-{number}", self.cron_job)
    }

    /// The number of a server, by its name; `None` if it has none, as one that people started.
    pub fn number_of(&self, job: &str) -> Option<u32> {
        job.strip_prefix(&self.cron_job)?.strip_prefix('-')?.parse().ok()
    }

    /// Why a server of it that has not started is to be made anew: its template changed, or somebody retried its pool. One that
    /// people made stays as it is.
    pub fn outdates(&self, job: &BatchJob) -> Option<&'static str> {
        if *job.metadata.annotations.get(TEMPLATE)? != self.hash {
            return Some("its template was changed before it started");
        }
        // Kubernetes says in whole seconds when it was made.
        let made_at = job.metadata.creation_timestamp?.as_second();
        let is_retried = self.retry_at.is_some_and(|at| at.as_second() > made_at);
        is_retried.then_some("its pool was retried before it started")
    }

    /// The Job of a server. Its CronJob owns it, so that Kubernetes deletes both together. The CronJob is not named as its
    /// controller: the controller would delete Jobs that ended, and with them the failures and GPU-hours that are read from them.
    pub fn job(&self, number: u32) -> Value {
        let of_template = |key: &str| -> Map<String, Value> {
            self.template["metadata"][key].as_object().cloned().unwrap_or_default()
        };
        let (mut labels, mut annotations) = (of_template("labels"), of_template("annotations"));
        labels.insert(POOL_LABEL.to_owned(), json!(self.pool.name));
        annotations.insert(TEMPLATE.to_owned(), json!(self.hash));
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.job_name(number),
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "CronJob", "name": self.cron_job, "uid": self.uid},
                ],
            },
            "spec": self.template["spec"],
        })
    }
}

impl PoolEstimate {
    fn check(&self) -> Result<(), String> {
        if self.gpus == 0 || self.parts == 0 || self.servers == 0 {
            return Err("gpus, parts and servers must be at least 1".to_owned());
        }
        let is_time = Duration::try_from_secs_f64(self.load_seconds).is_ok();
        let is_rate = self.dialogues_per_second.is_finite() && self.dialogues_per_second > 0.0;
        if !is_time || !is_rate {
            return Err(
                "load_seconds must not be negative, and dialogues_per_second must be above 0".to_owned()
            );
        }
        Ok(())
    }
}

/// Which Job fetches weights, and which index of it.
fn weights_of(text: &str) -> Result<(String, u32), String> {
    let parts = text.rsplit_once('/').and_then(|(job, index)| Some((job.to_owned(), index.parse().ok()?)));
    parts.ok_or_else(|| format!("the annotation {WEIGHTS} is not of the form JOB/INDEX"))
}

/// What the template of a Job says of its servers.
struct JobShape {
    parts: u32,
    /// GPUs that a pod requests, where a resource has a name by which it can be told.
    gpus: Option<u32>,
    model: String,
}

impl JobShape {
    fn read(template: &Value) -> Result<Self, String> {
        let spec = &template["spec"];
        let number = |key: &str| spec[key].as_u64().unwrap_or(1);
        let parts = number("completions");
        if number("parallelism") != parts {
            return Err("a server needs all of its parts at once: parallelism must be completions".to_owned());
        }
        let pod = &spec["template"]["spec"];
        let list = |key: &str| pod[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let worker = list("containers").iter().find(|container| container["name"] == WORKER_CONTAINER);
        let worker = worker.ok_or_else(|| format!("its pods have no container `{WORKER_CONTAINER}`"))?;
        let model = model_of(worker).ok_or("its worker has no --model, by which work is found for it")?;
        let requested = list("containers").iter().chain(list("initContainers")).filter_map(gpus_of).max();
        Ok(Self { parts: u32::try_from(parts).unwrap_or(u32::MAX), gpus: requested, model })
    }
}

/// The model that a worker's command line names.
fn model_of(worker: &Value) -> Option<String> {
    let words = |key: &str| worker[key].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = words("command").into_iter().chain(words("args")).collect();
    let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    let after = all.iter().position(|word| *word == "--model").and_then(|at| all.get(at + 1).copied());
    after.or_else(|| all.iter().find_map(|word| word.strip_prefix("--model="))).map(str::to_owned)
}

/// GPUs that a container requests.
fn gpus_of(container: &Value) -> Option<u32> {
    let resources = &container["resources"];
    let of = |key: &str| {
        let named = resources[key].as_object()?.iter().find(|(name, _)| name.ends_with("/gpu"))?;
        // Kubernetes takes whole GPUs as a number and as a text.
        named.1.as_u64().or_else(|| named.1.as_str()?.parse().ok())
    };
    of("requests").or_else(|| of("limits")).and_then(|gpus| u32::try_from(gpus).ok())
}

/// The first 16 digits of the hash of a template. Kubernetes and kubectl write the same template in different orders.
fn short_hash(template: &Value) -> String {
    let mut sorted = template.clone();
    sorted.sort_all_objects();
    let digest = Sha256::digest(sorted.to_string());
    domain::text::hex(&digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron_job(estimate: &str, change: impl Fn(&mut Value)) -> CronJob {
        let mut value = json!({
            "metadata": {
                "name": "bench-r1", "uid": "u-1", "labels": {POOL_LABEL: "r1"},
                "annotations": {ESTIMATE: estimate},
            },
            "spec": {"suspend": true, "jobTemplate": {
                "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
                "spec": {"completions": 2, "parallelism": 2, "template": {"spec": {
                    "initContainers": [{"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": 8}}}],
                    "containers": [{"name": "worker", "args": ["worker", "--model", "org/R1", "--until-done"]}],
                }}},
            }},
        });
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    const R1: &str = r#"{"gpus":8,"parts":2,"servers":1,"load_seconds":1200,"dialogues_per_second":0.625,"dialogues":1300}"#;

    #[test]
    fn a_cron_job_is_a_pool_and_its_jobs_go_with_it_without_being_its_own() {
        let template = PoolTemplate::read(&cron_job(R1, |_| {})).unwrap();
        let pool = Pool {
            name: "r1".to_owned(),
            parts: 2,
            gpus: 8,
            servers_max: 1,
            load: Duration::from_secs(1200),
            rate: 0.625,
        };
        assert_eq!((&template.pool, template.dialogues), (&pool, Some(1300)));
        assert_eq!(template.model, "org/R1");
        let job = template.job(3);
        assert_eq!(job["metadata"]["name"], "bench-r1-3");
        assert_eq!(template.number_of("bench-r1-3"), Some(3));
        assert_eq!(template.number_of("bench-r1-by-hand"), None);
        assert_eq!(job["metadata"]["labels"], json!({"kueue.x-k8s.io/queue-name": "gpu", POOL_LABEL: "r1"}));
        let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "bench-r1", "uid": "u-1"}]);
        assert_eq!(job["metadata"]["ownerReferences"], owner);
        assert_eq!(job["spec"]["completions"], 2);
        // The same template has the same hash, whatever the estimate says.
        let sooner = PoolTemplate::read(&cron_job(&R1.replace("1200", "600"), |_| {})).unwrap();
        assert_eq!(sooner.hash, template.hash);
        // So it has as kubectl writes it, in another order.
        let sorted = PoolTemplate::read(&cron_job(R1, Value::sort_all_objects)).unwrap();
        assert_eq!(sorted.hash, template.hash);
        let other = PoolTemplate::read(&cron_job(R1, |value| {
            value["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] = json!(60);
        }));
        assert_ne!(other.unwrap().hash, template.hash);
    }

    #[test]
    fn what_is_no_pool_says_why() {
        let problem = |estimate: &str, change: &dyn Fn(&mut Value)| {
            PoolTemplate::read(&cron_job(estimate, change)).unwrap_err().to_string()
        };
        let nothing: &dyn Fn(&mut Value) = &|_| {};
        assert!(
            problem("{}", nothing).starts_with("bench-r1: the annotation kgfleet/estimate: missing field")
        );
        assert!(problem(&R1.replace(":8", ":0"), nothing).contains("must be at least 1"));
        assert!(problem(&R1.replace("0.625", "0"), nothing).contains("must be above 0"));
        assert!(problem(&R1.replace("1200", "-1"), nothing).contains("must not be negative"));
        assert!(
            problem(&R1.replace(r#""parts":2"#, r#""parts":3"#), nothing)
                .contains("says 3 parts, the Job has 2")
        );
        assert!(
            problem(&R1.replace(":8", ":4"), nothing).contains("says 4 GPUs of a part, the pod requests 8")
        );
        let unlabelled = |value: &mut Value| value["metadata"]["labels"] = json!({});
        assert!(problem(R1, &unlabelled).contains("the label kgfleet/pool is missing"));
        let pod = |key: &'static str, to: Value| {
            move |value: &mut Value| {
                value["spec"]["jobTemplate"]["spec"]["template"]["spec"][key] = to.clone();
            }
        };
        assert!(problem(R1, &pod("containers", json!([]))).contains("no container `worker`"));
        assert!(problem(R1, &pod("containers", json!([{"name": "worker"}]))).contains("no --model"));
        let late = |value: &mut Value| value["metadata"]["annotations"][RETRY] = json!("tomorrow");
        let nowhere = |value: &mut Value| value["metadata"]["annotations"][WEIGHTS] = json!("job");
        assert!(problem(R1, &nowhere).contains("JOB/INDEX"));
        assert!(problem(R1, &late).contains("no time in RFC 3339"));
    }
}
