//! What a worker needs to know of a run.

use domain::exchange::{RunMaterial, TaskUse};
use domain::{About, ModelLabel, RunId, TaskLabel};

use super::{ConversionError, all, every, required};
use crate::wire;

const MODELS: &str = "RunMaterial.model_spec_json";

impl From<TaskUse> for wire::TaskUse {
    fn from(task: TaskUse) -> Self {
        Self { label: task.label.to_string(), pack_label: task.pack_label.to_string() }
    }
}

impl TryFrom<wire::TaskUse> for TaskUse {
    type Error = ConversionError;

    fn try_from(task: wire::TaskUse) -> Result<Self, ConversionError> {
        Ok(Self {
            label: TaskLabel::new(required("TaskUse.label", task.label)?),
            pack_label: TaskLabel::new(required("TaskUse.pack_label", task.pack_label)?),
        })
    }
}

impl From<About> for wire::About {
    fn from(about: About) -> Self {
        let About { pipeline, stage, model, number } = about;
        Self { pipeline, stage, model: model.to_string(), number }
    }
}

impl TryFrom<wire::About> for About {
    type Error = ConversionError;

    fn try_from(about: wire::About) -> Result<Self, ConversionError> {
        Ok(Self {
            pipeline: required("About.pipeline", about.pipeline)?,
            stage: required("About.stage", about.stage)?,
            model: ModelLabel::new(required("About.model", about.model)?),
            number: about.number,
        })
    }
}

/// Fails where a model's settings cannot be written as JSON: a path that is no Unicode.
impl TryFrom<RunMaterial> for wire::RunMaterial {
    type Error = ConversionError;

    fn try_from(material: RunMaterial) -> Result<Self, ConversionError> {
        Ok(Self {
            run: material.run.to_string(),
            seed: material.seed,
            pack_hash: material.pack_hash,
            tasks: every(material.tasks),
            model_spec_json: material
                .models
                .iter()
                .map(serde_json::to_string)
                .collect::<Result<_, _>>()
                .map_err(|e| ConversionError::Unreadable { field: MODELS, reason: e.to_string() })?,
            protected: material.protected,
            about: material.about.map(Into::into),
        })
    }
}

impl TryFrom<wire::RunMaterial> for RunMaterial {
    type Error = ConversionError;

    fn try_from(material: wire::RunMaterial) -> Result<Self, ConversionError> {
        Ok(Self {
            run: RunId::new(required("RunMaterial.run", material.run)?),
            seed: material.seed,
            pack_hash: required("RunMaterial.pack_hash", material.pack_hash)?,
            tasks: all(material.tasks)?,
            models: material
                .model_spec_json
                .iter()
                .map(|json| serde_json::from_str(json))
                .collect::<Result<_, _>>()
                .map_err(|e| ConversionError::Unreadable { field: MODELS, reason: e.to_string() })?,
            protected: material.protected,
            about: material.about.map(TryInto::try_into).transpose()?,
        })
    }
}
