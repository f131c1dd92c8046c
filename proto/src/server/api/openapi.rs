//! The description of the API for makers of clients (OpenAPI 3.1), made from the table of routes.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::routes::{Answers, ApiRoute, Takes, routes};
use crate::api::problem::{PROBLEM_JSON, Problem};
use crate::api::{BASE, JSON_LINES};

/// The whole description.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes() {
        let path = paths.entry(format!("{BASE}{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation(&route, &mut generator);
    }
    let problem = generator.subschema_for::<Problem>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "kgfleet",
            "version": "1",
            "description": "The coordinator of a fleet, for people and tools. Workers use gRPC on the same port.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": {
                    "description": "Why the call failed (RFC 9457).",
                    "content": {PROBLEM_JSON: {"schema": problem}},
                },
            },
            "schemas": schemas,
        },
    })
}

fn operation(route: &ApiRoute, generator: &mut SchemaGenerator) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    for (name, kind, about) in route.query {
        let schema = json!({"type": kind});
        parameters.push(json!({"name": name, "in": "query", "description": about, "schema": schema}));
    }
    let roles: Vec<&str> = route.roles.iter().map(|role| role.as_str()).collect();
    let mut described = json!({
        "operationId": route.operation,
        "description": format!("{} For: {}.", route.about, roles.join(", ")),
    });
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    let binary = json!({"application/octet-stream": {}});
    match (route.body, route.takes) {
        (Some(schema), _) => {
            let content = json!({"application/json": {"schema": schema(generator)}});
            described["requestBody"] = json!({"content": content});
        }
        (None, Takes::Pack) => described["requestBody"] = json!({"content": binary}),
        (None, Takes::Bytes(_)) => {}
    }
    let (status, answer) = match route.answer {
        Answers::Nothing => ("204", json!({"description": "Done."})),
        Answers::Json(schema) => {
            let content = json!({"application/json": {"schema": schema(generator)}});
            ("200", json!({"description": "The answer.", "content": content}))
        }
        Answers::Events(schema) => {
            let content = json!({"text/event-stream": {"itemSchema": schema(generator)}});
            let words = "Events `view` with this as data, then `end`, or `error` with a problem.";
            ("200", json!({"description": words, "content": content}))
        }
        Answers::Records => {
            let words = "Lines of `{\"documents\": …}`, `{\"manifest\": …}` and `{\"record\": …}`; \
                         `{\"error\": PROBLEM}` as the last one where the export ends early.";
            ("200", json!({"description": words, "content": {JSON_LINES: {}}}))
        }
        Answers::Pack => ("200", json!({"description": "The pack.", "content": binary})),
    };
    described["responses"] = json!({status: answer, "default": {"$ref": "#/components/responses/Problem"}});
    described
}
