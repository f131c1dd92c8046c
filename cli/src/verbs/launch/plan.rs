//! Which models of a configuration run when, on how many GPUs, and for how long.
//!
//! Pure: a configuration, a table and a number of GPUs in, a plan out. Models that fit on the GPUs together form a
//! wave; judges come after all models under test, so that their GPUs are up when those of the models are free.

use std::time::Duration;

use domain::ModelHome;
use domain::model::{Connector, ModelSpec};
use domain::reach::is_loopback_host;
use pool::bound::{PoolWork, bound};
use pool::{Limits, Mishaps, Placing, Pool, World, WorldPool};
use url::Url;

use super::table::{Size, Sizes};

/// The plan of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchPlan {
    /// Models that run together, one wave after the other.
    pub waves: Vec<Vec<ModelOnGpus>>,
    /// Models that providers serve.
    pub hosted: Vec<HostedModel>,
    /// Models that cannot run, with the reason.
    pub refused: Vec<(String, String)>,
}

/// How soon a plan could be over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shortest {
    /// If each server starts as soon as it fits.
    pub hours: f64,
    /// A lower bound.
    pub bound_hours: f64,
}

/// A model on GPUs of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOnGpus {
    /// Its label in the configuration.
    pub label: String,
    /// The name under which it is served: its id at Hugging Face.
    pub model: String,
    /// Whether it judges answers of others.
    pub judge: bool,
    /// GPUs of its server.
    pub gpus: u32,
    /// Nodes that its server spans.
    pub nodes: u32,
    /// Number of dialogues; `None` for judges, because the plan does not tell how many questions there will be.
    pub dialogues: Option<u64>,
    /// Hours that these take, with loading.
    pub hours: f64,
}

/// A model that a provider serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedModel {
    /// Its label in the configuration.
    pub label: String,
    /// How it is asked.
    pub connector: Connector,
    /// Where, if not at the provider's own address.
    pub endpoint: Option<String>,
}

/// A model, and how many dialogues it will hold.
pub struct WantedModel<'a> {
    pub spec: &'a ModelSpec,
    pub judge: bool,
    pub dialogues: Option<u64>,
}

impl LaunchPlan {
    /// Plans these models on so many GPUs. Judges are given in the order in which they are needed; one that is needed again
    /// later is given again.
    pub fn of(wanted: &[WantedModel<'_>], sizes: &Sizes, gpus: u32) -> Self {
        let mut plan = Self { waves: Vec::new(), hosted: Vec::new(), refused: Vec::new() };
        let mut served = Vec::new();
        for model in wanted {
            let label = model.spec.label.to_string();
            match place(model.spec) {
                Where::Hosted => plan.hosted.push(HostedModel {
                    label,
                    connector: model.spec.connector,
                    endpoint: model.spec.endpoint.clone(),
                }),
                Where::Nowhere(why) => plan.refused.push((label, why)),
                Where::Here => match on_gpus(model, sizes, gpus) {
                    Ok(model) => served.push(model),
                    Err(why) => plan.refused.push((label, why)),
                },
            }
        }
        let (judges, tested) = served.into_iter().partition(|model| model.judge);
        plan.waves.extend(waves(tested, gpus));
        plan.waves.extend(waves_in_order(judges, gpus));
        plan
    }

    /// The models on GPUs.
    pub fn served(&self) -> impl Iterator<Item = &ModelOnGpus> {
        self.waves.iter().flatten()
    }

    /// How long the models under test take on so many GPUs if each server starts as soon as it fits, the longest first; and
    /// how long they take at least, however they are planned.
    pub fn shortest(&self, sizes: &Sizes, gpus: u32) -> Shortest {
        let per_node = sizes.gpu.per_node.min(gpus).max(1);
        let nodes = gpus / per_node;
        let pools: Vec<WorldPool> = self.served().filter_map(|model| of_model(model, sizes)).collect();
        let work: Vec<PoolWork<'_>> =
            pools.iter().map(|pool| PoolWork { pool: &pool.believed, dialogues: pool.dialogues }).collect();
        let bound = bound(&work, nodes, per_node);
        let limits = Limits::of_gpus(nodes * per_node);
        let nodes = vec![per_node; nodes as usize];
        let world = World { nodes, placing: Placing::Spread, pools, limits, mishaps: Mishaps::default() };
        // Nothing is drawn where nothing goes wrong.
        let outcome = world.run(0);
        let hours = |time: Duration| time.as_secs_f64() / 3600.0;
        Shortest { hours: hours(outcome.over_at), bound_hours: hours(bound) }
    }

    /// GPUs in use at once, at most.
    pub fn gpus(&self) -> u32 {
        let of_wave = |wave: &Vec<ModelOnGpus>| wave.iter().map(|model| model.gpus).sum();
        self.waves.iter().map(of_wave).max().unwrap_or(0)
    }

    /// Hours of all waves, one after the other.
    pub fn hours(&self) -> f64 {
        let of_wave = |wave: &Vec<ModelOnGpus>| wave.iter().map(|model| model.hours).fold(0.0, f64::max);
        total(self.waves.iter().map(of_wave))
    }

    /// Hours times GPUs, if every model gives its GPUs back when it is done.
    pub fn gpu_hours(&self) -> f64 {
        total(self.served().map(|model| model.hours * f64::from(model.gpus)))
    }
}

/// The sum of hours; 0 for none, where the standard library gives -0, which would be printed.
fn total(hours: impl Iterator<Item = f64>) -> f64 {
    hours.fold(0.0, |sum, hours| sum + hours)
}

/// The pool of a model under test, which is as the table says.
fn of_model(model: &ModelOnGpus, sizes: &Sizes) -> Option<WorldPool> {
    let size = sizes.models.get(&model.model)?;
    let dialogues = model.dialogues?;
    let tokens = sizes.tokens_of(size);
    let pool = Pool {
        name: model.label.clone(),
        parts: model.nodes,
        gpus: model.gpus / model.nodes,
        servers_max: 1,
        load: Duration::from_secs(60 * u64::from(size.load_minutes)),
        rate: f64::from(size.tokens_per_second) / f64::from(tokens),
    };
    Some(WorldPool::exact(pool, dialogues as f64))
}

/// Where a model runs.
enum Where {
    Here,
    Hosted,
    Nowhere(String),
}

fn place(model: &ModelSpec) -> Where {
    match model.connector.provider().home {
        ModelHome::Provider(_) => Where::Hosted,
        ModelHome::Servers => match &model.endpoint {
            Some(endpoint) if !is_loopback(endpoint) => Where::Hosted,
            _ => Where::Here,
        },
        ModelHome::Process => {
            Where::Nowhere("is simulated or replayed: `kgfleet run` does that on one machine".to_owned())
        }
    }
}

/// Whether an address is that of a server beside the worker.
fn is_loopback(endpoint: &str) -> bool {
    Url::parse(endpoint).is_ok_and(|address| address.host_str().is_some_and(is_loopback_host))
}

fn on_gpus(wanted: &WantedModel<'_>, sizes: &Sizes, gpus: u32) -> Result<ModelOnGpus, String> {
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
    Ok(ModelOnGpus {
        label: wanted.spec.label.to_string(),
        model: model.to_owned(),
        judge: wanted.judge,
        gpus: size.gpus,
        nodes: size.gpus.div_ceil(sizes.gpu.per_node),
        dialogues: wanted.dialogues,
        hours: hours(size, sizes, wanted.dialogues.unwrap_or(0)),
    })
}

/// Time to load the model, and to write what the dialogues take.
fn hours(size: &Size, sizes: &Sizes, dialogues: u64) -> f64 {
    let tokens = sizes.tokens_of(size);
    let seconds = dialogues as f64 * f64::from(tokens) / f64::from(size.tokens_per_second);
    seconds / 3600.0 + f64::from(size.load_minutes) / 60.0
}

/// Models that run together: the longest first, so that those of a wave end at about the same time.
fn waves(mut models: Vec<ModelOnGpus>, gpus: u32) -> Vec<Vec<ModelOnGpus>> {
    models.sort_by(|a, b| b.hours.total_cmp(&a.hours).then_with(|| a.label.cmp(&b.label)));
    let mut waves: Vec<(u32, Vec<ModelOnGpus>)> = Vec::new();
    for model in models {
        match waves.iter_mut().find(|(taken, _)| taken + model.gpus <= gpus) {
            Some((taken, wave)) => {
                *taken += model.gpus;
                wave.push(model);
            }
            None => waves.push((model.gpus, vec![model])),
        }
    }
    waves.into_iter().map(|(_, wave)| wave).collect()
}

/// Groups judges that run together, in the order in which they are needed: later ones read the replies of earlier ones.
fn waves_in_order(judges: Vec<ModelOnGpus>, gpus: u32) -> Vec<Vec<ModelOnGpus>> {
    let mut waves: Vec<(u32, Vec<ModelOnGpus>)> = Vec::new();
    for judge in judges {
        match waves.last_mut() {
            Some((_, wave)) if wave.iter().any(|other| other.label == judge.label) => {}
            Some((taken, wave)) if *taken + judge.gpus <= gpus => {
                *taken += judge.gpus;
                wave.push(judge);
            }
            _ => waves.push((judge.gpus, vec![judge])),
        }
    }
    waves.into_iter().map(|(_, wave)| wave).collect()
}

#[cfg(test)]
mod tests {
    use coordinator::configuration::Configuration;

    use super::*;

    const PAPER: &str = include_str!("../../../../task-data/configurations/paper.toml");

    fn paper(gpus: u32) -> LaunchPlan {
        let configuration = Configuration::parse(PAPER, "paper.toml").unwrap();
        let wanted: Vec<WantedModel<'_>> = configuration
            .models
            .iter()
            .map(|spec| {
                let iterations = u64::from(spec.iterations.unwrap_or(configuration.iterations));
                WantedModel { spec, judge: false, dialogues: Some(iterations * 26) }
            })
            .collect();
        LaunchPlan::of(&wanted, &Sizes::read(None).unwrap(), gpus)
    }

    #[test]
    fn the_open_models_of_the_paper_are_planned_as_counted_by_hand() {
        let plan = paper(16);
        assert_eq!((plan.served().count(), plan.hosted.len(), plan.refused.len()), (31, 10, 0));
        // 17 models with one GPU, 5 with two, 5 with four, one with eight, three with sixteen.
        assert_eq!(plan.served().map(|model| model.gpus).sum::<u32>(), 17 + 5 * 2 + 5 * 4 + 8 + 3 * 16);
        assert_eq!(plan.gpus(), 16);
        // The three on sixteen GPUs run alone; the other 55 GPUs take four waves.
        assert_eq!(plan.waves.len(), 7);
        assert!(plan.waves.iter().all(|wave| wave.iter().map(|model| model.gpus).sum::<u32>() <= 16));
        let of = |label: &str| plan.served().find(|model| model.label == label).unwrap().clone();
        // 1 300 dialogues x 4 000 tokens / 2 500 tokens per second = 2 080 s, and 90 minutes to load.
        assert!((of("DeepSeek-R1").hours - (2080.0 / 3600.0 + 1.5)).abs() < 1e-9);
        // 1 300 x 400 / 4 000 = 130 s, and 5 minutes.
        assert!((of("Qwen2.5-7B-Instruct").hours - (130.0 / 3600.0 + 5.0 / 60.0)).abs() < 1e-9);
        assert_eq!((of("DeepSeek-R1").nodes, of("Qwen3-235B-A22B").nodes), (2, 1));
    }

    #[test]
    fn how_soon_the_matrix_could_be_over_is_told_with_its_bound() {
        let shortest = |gpus: u32| {
            let Shortest { hours, bound_hours } = paper(gpus).shortest(&Sizes::read(None).unwrap(), gpus);
            assert!(
                hours >= bound_hours && hours < 1.15 * bound_hours,
                "{gpus} GPUs: {hours}, {bound_hours}"
            );
            format!("{bound_hours:.2}")
        };
        // By hand: the three on two nodes one after the other, and the others beside them or after.
        assert_eq!([16, 24, 32, 64].map(shortest), ["6.61", "5.19", "3.30", "2.08"]);
        let nothing =
            LaunchPlan::of(&[], &Sizes::read(None).unwrap(), 8).shortest(&Sizes::read(None).unwrap(), 8);
        assert_eq!(nothing, Shortest { hours: 0.0, bound_hours: 0.0 });
    }

    #[test]
    fn what_does_not_fit_is_named_with_the_reason() {
        let plan = paper(4);
        let refused: Vec<&str> = plan.refused.iter().map(|(label, _)| label.as_str()).collect();
        let large =
            ["Qwen3-235B-A22B", "Llama-4-Maverick-17B-128E-Instruct", "DeepSeek-V3-0324", "DeepSeek-R1"];
        assert_eq!(refused, large);
        assert_eq!(plan.refused[0].1, "needs 8 GPUs (H100 80 GB), and there are 4 (--gpus)");
        assert_eq!(plan.served().count(), 27);
    }

    #[test]
    fn nothing_to_serve_takes_no_hours() {
        let plan = LaunchPlan::of(&[], &Sizes::read(None).unwrap(), 8);
        assert_eq!(format!("{:.1} {:.1}", plan.hours(), plan.gpu_hours()), "0.0 0.0");
    }

    #[test]
    fn judges_come_after_the_models_under_test() {
        let text = PAPER.replace("name = \"LLM-KG-Bench 3 matrix\"", "name = \"j\"");
        let configuration = Configuration::parse(&text, "paper.toml").unwrap();
        let spec =
            |label: &str| configuration.models.iter().find(|model| model.label.as_str() == label).unwrap();
        let wanted = [
            WantedModel { spec: spec("Qwen2.5-72B-Instruct"), judge: true, dialogues: None },
            WantedModel { spec: spec("Qwen2.5-7B-Instruct"), judge: false, dialogues: Some(20) },
        ];
        let plan = LaunchPlan::of(&wanted, &Sizes::read(None).unwrap(), 8);
        let order: Vec<bool> = plan.served().map(|model| model.judge).collect();
        assert_eq!((plan.waves.len(), order), (2, vec![false, true]));
    }

    #[test]
    fn judges_that_do_not_fit_together_come_in_the_order_of_their_stages_and_again_where_they_are_needed() {
        let configuration = Configuration::parse(PAPER, "paper.toml").unwrap();
        let spec =
            |label: &str| configuration.models.iter().find(|model| model.label.as_str() == label).unwrap();
        let judge = |label: &str| WantedModel { spec: spec(label), judge: true, dialogues: None };
        // One with one GPU, one with four, and the first again.
        let wanted =
            ["Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct", "Qwen2.5-72B-Instruct", "Qwen2.5-7B-Instruct"];
        let wanted: Vec<WantedModel<'_>> = wanted.into_iter().map(judge).collect();
        let labels = |gpus: u32| -> Vec<Vec<String>> {
            let plan = LaunchPlan::of(&wanted, &Sizes::read(None).unwrap(), gpus);
            plan.waves.iter().map(|wave| wave.iter().map(|model| model.label.clone()).collect()).collect()
        };
        let (small, large) = ("Qwen2.5-7B-Instruct".to_owned(), "Qwen2.5-72B-Instruct".to_owned());
        assert_eq!(labels(8), [vec![small.clone(), large.clone()]]);
        assert_eq!(labels(4), [vec![small.clone()], vec![large], vec![small]]);
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
