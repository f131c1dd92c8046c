//! What a worker needs to know of a run.

use domain::RunId;
use domain::exchange::RunMaterial;

use super::{ConversionError, all, every, required};
use crate::wire;

const MODELS: &str = "RunMaterial.model_spec_json";

/// Fails if a model's settings cannot be written as JSON, such as a path that is not Unicode.
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
