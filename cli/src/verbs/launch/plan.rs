//! Which models of a configuration run on GPUs, on how many, and what they have to do.
//!
//! Pure: a configuration and a table in, a plan out. When they run is the [`schedule`](super::schedule)'s.

use conductor::pool::Pool;
use domain::ModelHome;
use domain::model::ModelSpec;
use domain::reach::is_loopback_host;
use url::Url;

use super::table::{Sizes, WeightsPlace};

/// The plan of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchPlan {
    /// Models on GPUs, in the order of the configuration, judges last.
    pub served: Vec<ModelOnGpus>,
    /// Models that providers serve.
    pub hosted: Vec<ModelSpec>,
    /// Models that cannot run, with the reason.
    pub refused: Vec<(String, String)>,
    /// Where servers are taken to have their weights from.
    pub weights: WeightsPlace,
}

/// A model on GPUs of the cluster: one pool, under however many labels it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOnGpus {
    /// Its labels in the configuration.
    pub labels: Vec<String>,
    /// What is believed of its servers.
    pub pool: Pool,
    /// The name under which it is served: its id at Hugging Face.
    pub model: String,
    /// Whether it only judges answers of others.
    pub judge: bool,
    /// Number of dialogues that are known beforehand. How many questions judges will be asked is not.
    pub dialogues: u64,
}

impl ModelOnGpus {
    /// GPUs of its server.
    pub fn gpus(&self) -> u32 {
        self.pool.server_gpus()
    }

    /// Its labels, for people.
    pub fn label(&self) -> String {
        self.labels.join(", ")
    }
}

/// A model, and how many dialogues it will hold; `None`: it only judges answers of others.
pub struct WantedModel<'a> {
    pub spec: &'a ModelSpec,
    pub dialogues: Option<u64>,
}

impl LaunchPlan {
    /// Plans these models on at most so many GPUs each.
    pub fn of(wanted: &[WantedModel<'_>], sizes: &Sizes, gpus: u32, weights: WeightsPlace) -> Self {
        let mut plan = Self { weights, ..Self::default() };
        for model in wanted {
            let label = model.spec.label.to_string();
            let endpoint = model.spec.endpoint.as_deref();
            match model.spec.connector.provider().home {
                ModelHome::Process => {
                    let why = "is simulated or replayed: `kgfleet run` does that on one machine";
                    plan.refused.push((label, why.to_owned()));
                }
                ModelHome::Servers if endpoint.is_none_or(is_loopback) => {
                    plan.serve(model, label, sizes, gpus);
                }
                ModelHome::Servers | ModelHome::Provider(_) => plan.hosted.push(model.spec.clone()),
            }
        }
        plan.served.sort_by_key(|model| model.judge);
        plan
    }

    /// The same with weights from there.
    pub fn with_weights(&self, weights: WeightsPlace, sizes: &Sizes) -> Self {
        let mut plan = Self { weights, ..self.clone() };
        for model in &mut plan.served {
            model.pool.load = sizes.load(&sizes.models[&model.model], weights);
        }
        plan
    }

    /// Adds what is asked of a model on GPUs to its pool.
    fn serve(&mut self, wanted: &WantedModel<'_>, label: String, sizes: &Sizes, gpus: u32) {
        let model = wanted.spec.requested();
        if let Some(known) = self.served.iter_mut().find(|known| known.model == model) {
            known.dialogues += wanted.dialogues.unwrap_or(0);
            known.judge &= wanted.dialogues.is_none();
            if !known.labels.contains(&label) {
                known.labels.push(label);
            }
            return;
        }
        match on_gpus(wanted, &label, (sizes, self.weights), gpus) {
            Ok(model) => self.served.push(model),
            Err(why) => self.refused.push((label, why)),
        }
    }
}

/// Whether an address is that of a server beside the worker.
fn is_loopback(endpoint: &str) -> bool {
    Url::parse(endpoint).is_ok_and(|address| address.host_str().is_some_and(is_loopback_host))
}

fn on_gpus(
    wanted: &WantedModel<'_>,
    label: &str,
    (sizes, weights): (&Sizes, WeightsPlace),
    gpus: u32,
) -> Result<ModelOnGpus, String> {
    let model = wanted.spec.requested();
    let Some(size) = sizes.models.get(model) else {
        return Err(format!(
            "`{model}` is not in the table: copy it, add the model, and give the copy with --table"
        ));
    };
    if size.gpus > gpus {
        let name = &sizes.gpu.name;
        return Err(format!("needs {} GPUs ({name}), and there are {gpus} (--gpus)", size.gpus));
    }
    let parts = size.gpus.div_ceil(sizes.gpu.per_node);
    let pool = Pool {
        name: label.to_owned(),
        parts,
        gpus: size.gpus / parts,
        servers_max: size.max_servers,
        load: sizes.load(size, weights),
        rate: f64::from(size.tokens_per_second) / f64::from(sizes.tokens_of(size)),
    };
    Ok(ModelOnGpus {
        labels: vec![label.to_owned()],
        pool,
        model: model.to_owned(),
        judge: wanted.dialogues.is_none(),
        dialogues: wanted.dialogues.unwrap_or(0),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use coordinator::configuration::Configuration;

    use super::*;

    const PAPER: &str = include_str!("../../../../task-data/configurations/paper.toml");

    /// The models of the paper's matrix, with their dialogues, whose servers fetch their weights.
    pub fn paper(gpus: u32) -> LaunchPlan {
        let configuration = Configuration::parse(PAPER, "paper.toml").unwrap();
        let wanted: Vec<WantedModel<'_>> = configuration
            .models
            .iter()
            .map(|spec| {
                let iterations = spec.iterations.or(configuration.iterations).unwrap();
                WantedModel { spec, dialogues: Some(u64::from(iterations) * 26) }
            })
            .collect();
        LaunchPlan::of(&wanted, &Sizes::read(None).unwrap(), gpus, WeightsPlace::Afar)
    }

    #[test]
    fn every_model_of_the_paper_has_a_pool_or_a_provider() {
        let plan = paper(16);
        assert_eq!((plan.served.len(), plan.hosted.len(), plan.refused.len()), (31, 10, 0));
        let of = |label: &str| plan.served.iter().find(|model| model.labels == [label]).unwrap();
        // 4 000 tokens a second, 400 a dialogue, and 5 minutes to load.
        let small = &of("Qwen2.5-7B-Instruct").pool;
        assert_eq!((small.rate, small.load.as_secs()), (10.0, 300));
        assert_eq!((of("DeepSeek-R1").pool.parts, of("Qwen3-235B-A22B").pool.parts), (2, 1));
    }

    #[test]
    fn what_does_not_fit_is_named_with_the_reason() {
        let plan = paper(4);
        let refused: Vec<&str> = plan.refused.iter().map(|(label, _)| label.as_str()).collect();
        let large =
            ["Qwen3-235B-A22B", "Llama-4-Maverick-17B-128E-Instruct", "DeepSeek-V3-0324", "DeepSeek-R1"];
        assert_eq!(refused, large);
        assert_eq!(plan.refused[0].1, "needs 8 GPUs (H100 80 GB), and there are 4 (--gpus)");
        assert_eq!(plan.served.len(), 27);
    }

    #[test]
    fn a_model_has_one_pool_for_all_that_it_is_asked() {
        let configuration = Configuration::parse(PAPER, "paper.toml").unwrap();
        let spec =
            |label: &str| configuration.models.iter().find(|model| model.label.as_str() == label).unwrap();
        let other = ModelSpec { label: "again".into(), ..spec("Qwen2.5-7B-Instruct").clone() };
        let wanted = [
            WantedModel { spec: spec("Qwen2.5-72B-Instruct"), dialogues: None },
            WantedModel { spec: spec("Qwen2.5-7B-Instruct"), dialogues: Some(20) },
            WantedModel { spec: &other, dialogues: Some(4) },
            WantedModel { spec: spec("Qwen2.5-7B-Instruct"), dialogues: None },
        ];
        let plan = LaunchPlan::of(&wanted, &Sizes::read(None).unwrap(), 8, WeightsPlace::Afar);
        let told: Vec<(String, bool, u64)> =
            plan.served.iter().map(|model| (model.label(), model.judge, model.dialogues)).collect();
        let small = ("Qwen2.5-7B-Instruct, again".to_owned(), false, 24);
        assert_eq!(told, [small, ("Qwen2.5-72B-Instruct".to_owned(), true, 0)]);
    }

    #[test]
    fn a_server_beside_the_worker_is_known_by_its_address() {
        assert!(
            ["http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]:8000"]
                .into_iter()
                .all(is_loopback)
        );
        assert!(!["https://api.openai.com/v1", "http://10.0.0.1:8000/v1"].into_iter().any(is_loopback));
    }
}
