//! The first pass: collects tasks, their cases and first prompts, and samples of their follow-ups.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::{PromptKind, TaskLabel};
use results::llmkgbench::ResultRecord;
use serde_json::{Map, Value};
use tasks::{CaseData, TaskClass, TaskData, Wording};

use super::follow_ups::{self, Sample};
use super::own_wording;
use super::report::{Problem, TemplateOrigin};

/// Maximum number of follow-ups of one kind that a template is derived from, per task. All others are only compared
/// with it.
const SAMPLES_MAX: usize = 64;

/// The fields of a case that may contain its identifier.
const UID_FIELDS: [&str; 2] = ["uid", "taskUid"];

/// The tasks so far, in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Collector {
    tasks: Vec<CollectedTask>,
}

#[derive(Debug)]
pub(super) struct CollectedTask {
    /// The task as in the pack. Until [`Collector::settle_wording`] it has no wording.
    pub(super) data: TaskData,
    pub(super) class: TaskClass,
    /// The origin of each follow-up template.
    pub(super) origins: BTreeMap<PromptKind, TemplateOrigin>,
    /// Cases by identity.
    cases: HashMap<Identity, usize>,
    /// The model whose first prompts are used, per case.
    askers: Vec<String>,
    samples: BTreeMap<PromptKind, Vec<Sample>>,
}

/// The identity of a case within its task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// List tasks number their cases.
    Uid(String),
    /// Static classes have one case, or one per set of values.
    Data(String),
    /// Records of 2023 contain no case, so the prompt identifies it.
    Prompt(String),
}

impl Identity {
    fn of(data: &Map<String, Value>, first_prompt: &str) -> Self {
        if let Some(uid) = UID_FIELDS.iter().find_map(|field| data.get(*field)?.as_str()) {
            Self::Uid(uid.to_owned())
        } else if data.is_empty() {
            Self::Prompt(first_prompt.to_owned())
        } else {
            Self::Data(serde_json::to_string(data).unwrap_or_default())
        }
    }
}

impl Collector {
    /// Adds a record. Returns its conflicts with earlier records.
    pub(super) fn add(&mut self, record: &ResultRecord) -> Vec<Problem> {
        let class = match TaskClass::resolve(record.task_id(), record.task_version()) {
            Ok(class) => class,
            Err(error) => return vec![Problem::Unusable { message: error.to_string() }],
        };
        let Some(prompt) = record.prompts().next() else {
            return vec![Problem::Unusable { message: "no prompt is recorded".to_owned() }];
        };
        let known = self.index_of(record).unwrap_or_else(|| {
            self.tasks.push(CollectedTask::new(record, class));
            self.tasks.len() - 1
        });
        let task = &mut self.tasks[known];
        if !task.is_of(record) {
            return vec![Problem::OtherTask];
        }
        task.sample(record);
        task.add_case(record.task_data().cloned().unwrap_or_default(), prompt, record.model_id())
    }

    /// The tasks, in order of first appearance.
    pub(super) fn tasks(&self) -> &[CollectedTask] {
        &self.tasks
    }

    /// The task of a record and its index, unless it was left out or the record belongs to another version of it.
    pub(super) fn task_of(&self, record: &ResultRecord) -> Option<(usize, &CollectedTask)> {
        let index = self.index_of(record)?;
        let task = &self.tasks[index];
        task.is_of(record).then_some((index, task))
    }

    fn index_of(&self, record: &ResultRecord) -> Option<usize> {
        self.tasks.iter().position(|task| task.data.label.as_str() == record.task_label())
    }

    /// Leaves out the tasks that `wanted` refuses.
    pub(super) fn keep(&mut self, mut wanted: impl FnMut(&TaskData) -> bool) {
        self.tasks.retain(|task| wanted(&task.data));
    }

    /// Merges equal first prompts, and gives every task the follow-up templates that it may need: derived from its
    /// own records; else those of its class, or of its family, if all of them agree; else our own.
    pub(super) fn settle_wording(&mut self) {
        for task in &mut self.tasks {
            for (kind, samples) in std::mem::take(&mut task.samples) {
                if let Some(template) = follow_ups::learn(&samples) {
                    task.data.wording.insert(kind, template);
                    task.origins.insert(kind, TemplateOrigin::Learnt);
                }
            }
            for case in task.data.cases.iter_mut().map(Arc::make_mut) {
                if case.first_prompts.iter().all(|prompt| *prompt == case.first_prompts[0]) {
                    case.first_prompts.truncate(1);
                }
            }
        }
        for index in 0..self.tasks.len() {
            for kind in self.tasks[index].class.follow_ups {
                if self.tasks[index].data.wording.get(*kind).is_none() {
                    let (template, origin) = match self.lender(index, *kind) {
                        Some(lender) => (
                            lender.data.wording.get(*kind).cloned(),
                            TemplateOrigin::Borrowed { from: lender.data.label.clone() },
                        ),
                        None => (None, TemplateOrigin::Own),
                    };
                    let task = &mut self.tasks[index];
                    let template = template.unwrap_or_else(|| own_wording::template(task.class, *kind));
                    task.data.wording.insert(*kind, template);
                    task.origins.insert(*kind, origin);
                }
            }
        }
    }

    /// A task with a derived template of this kind that agrees with all related ones.
    fn lender(&self, borrower: usize, kind: PromptKind) -> Option<&CollectedTask> {
        let borrower = &self.tasks[borrower];
        let unanimous = |related: &dyn Fn(&CollectedTask) -> bool| {
            let learnt = |task: &&CollectedTask| task.origins.get(&kind) == Some(&TemplateOrigin::Learnt);
            let mut lenders = self.tasks.iter().filter(learnt).filter(|task| related(task));
            let first = lenders.next()?;
            lenders.all(|task| task.data.wording.get(kind) == first.data.wording.get(kind)).then_some(first)
        };
        unanimous(&|task| task.class == borrower.class)
            .or_else(|| unanimous(&|task| follow_ups::is_same_family(task.class, borrower.class)))
    }
}

impl CollectedTask {
    fn new(record: &ResultRecord, class: TaskClass) -> Self {
        Self {
            data: TaskData {
                label: TaskLabel::new(record.task_label()),
                class: record.task_id().to_owned(),
                version: record.task_version().to_owned(),
                parameters: record.task_parameter().cloned().unwrap_or_default(),
                wording: Wording::default(),
                cases: Vec::new(),
            },
            class,
            origins: BTreeMap::new(),
            cases: HashMap::new(),
            askers: Vec::new(),
            samples: BTreeMap::new(),
        }
    }

    /// Whether a record with this label belongs to this task: releases changed versions and parameters, but not
    /// labels.
    fn is_of(&self, record: &ResultRecord) -> bool {
        self.data.class == record.task_id()
            && self.data.version == record.task_version()
            && record.task_parameter().map_or(self.data.parameters.is_empty(), |p| *p == self.data.parameters)
    }

    pub(super) fn case_index(&self, record: &ResultRecord) -> Option<usize> {
        static NO_DATA: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        let data = record.task_data().unwrap_or(&NO_DATA);
        self.cases.get(&Identity::of(data, record.prompts().next()?)).copied()
    }

    /// Adds a case, and its first prompt if this model was the first to be asked this case.
    fn add_case(&mut self, data: Map<String, Value>, prompt: &str, model: &str) -> Vec<Problem> {
        let identity = Identity::of(&data, prompt);
        let Some(&index) = self.cases.get(&identity) else {
            let uid = match &identity {
                Identity::Uid(uid) => uid.clone(),
                _ => format!("case-{}", self.data.cases.len() + 1),
            };
            self.cases.insert(identity, self.data.cases.len());
            self.askers.push(model.to_owned());
            let first_prompts = vec![prompt.to_owned()];
            let case = CaseData { uid, data, first_prompts, ..CaseData::default() };
            self.data.cases.push(Arc::new(case));
            return Vec::new();
        };
        let case = Arc::make_mut(&mut self.data.cases[index]);
        if self.askers[index] == model {
            case.first_prompts.push(prompt.to_owned());
        }
        if case.data == data { Vec::new() } else { vec![Problem::CaseDiffers { case: case.uid.clone() }] }
    }

    fn sample(&mut self, record: &ResultRecord) {
        for follow_up in follow_ups::recorded(record, self.class) {
            let Some(kind) = follow_up.kind else { continue };
            let samples = self.samples.entry(kind).or_default();
            if samples.len() < SAMPLES_MAX {
                samples.push(Sample { text: follow_up.text.to_owned(), fields: follow_up.fields });
            }
        }
    }
}
