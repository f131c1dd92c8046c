//! Writes dashboards in Grafana's JSON format.

use serde_json::{Value, json};

use crate::panels::{ColourStep, Dashboard, Is, Panel, PanelKind, Variable, VariableChoice, chosen};

/// Version of the dashboard format, of Grafana 10 and later.
const SCHEMA: u32 = 39;

/// Where a coordinator on the reader's machine, or a forwarded port of one, shows the runbooks.
const RUNBOOKS: &str = "http://127.0.0.1:7701/runbooks";

/// Columns of a dashboard.
const COLUMNS: u32 = 24;

/// The dashboard as a file, with links to these others.
pub fn file(dashboard: &Dashboard, others: &[&Dashboard]) -> String {
    let mut panels = Vec::new();
    let mut y = 0;
    for row in dashboard.rows {
        let heading = json!({
            "id": panels.len() + 1, "type": "row", "title": row.title, "collapsed": false, "panels": [],
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
        });
        panels.push(heading);
        y += 1;
        let (mut x, mut tallest) = (0, 0);
        for panel in row.panels {
            if x + panel.width > COLUMNS {
                (x, y, tallest) = (0, y + tallest, 0);
            }
            let height = height(panel.kind);
            let place = json!({"h": height, "w": panel.width, "x": x, "y": y});
            panels.push(written(panel, dashboard.variables, panels.len() + 1, place));
            (x, tallest) = (x + panel.width, tallest.max(height));
        }
        y += tallest;
    }
    let mut variables = vec![json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        "refresh": 1, "hide": 0, "multi": false, "includeAll": false, "regex": "", "skipUrlSync": false,
        "options": [],
    })];
    variables.extend(dashboard.variables.iter().map(variable));
    variables.push(json!({
        "name": "runbooks", "label": "Address of the runbooks", "type": "textbox", "hide": 0, "skipUrlSync": false,
        "query": RUNBOOKS, "options": [], "current": {"selected": true, "text": RUNBOOKS, "value": RUNBOOKS},
    }));
    let to_others =
        others.iter().map(|other| link(other.title, &format!("/d/{}", other.uid), "dashboard", false));
    let links: Vec<Value> = to_others.chain([link("Runbooks", "${runbooks}", "doc", true)]).collect();
    let whole = json!({
        "uid": dashboard.uid, "title": dashboard.title, "description": dashboard.about, "tags": ["kgfleet"],
        "id": null, "schemaVersion": SCHEMA, "version": 1, "editable": true, "graphTooltip": 1,
        "fiscalYearStartMonth": 0, "liveNow": false, "refresh": "10s", "timezone": "", "weekStart": "",
        "time": {"from": "now-1h", "to": "now"}, "timepicker": {},
        "annotations": {"list": []}, "templating": {"list": variables}, "links": links, "panels": panels,
    });
    let mut text = format!("{whole:#}");
    text.push('\n');
    text
}

fn link(title: &str, url: &str, icon: &str, new_tab: bool) -> Value {
    json!({
        "title": title, "type": "link", "url": url, "icon": icon, "targetBlank": new_tab, "asDropdown": false,
        "includeVars": true, "keepTime": true, "tags": [], "tooltip": "",
    })
}

fn variable(variable: &Variable) -> Value {
    let Variable { name, label, from, choice } = *variable;
    let several = choice == VariableChoice::Several;
    // One that is offered by its age is read from the text of the series.
    let (definition, regex) = match choice {
        VariableChoice::Several => (format!("label_values({from}, {name})"), String::new()),
        VariableChoice::Latest => (
            format!("query_result(sort_desc(max by ({name}) ({from}{{release=~\"$release\"}})))"),
            format!("/{name}=\"([^\"]+)\"/"),
        ),
    };
    let mut written = json!({
        "name": name, "label": label, "type": "query",
        "query": {"query": definition, "refId": "variable"}, "datasource": source(), "refresh": 2,
        "sort": if several { 2 } else { 0 }, "multi": several, "includeAll": several, "hide": 0, "regex": regex,
        "skipUrlSync": false, "options": [],
    });
    if several {
        written["allValue"] = json!(".*");
        written["current"] = json!({"selected": true, "text": ["All"], "value": ["$__all"]});
    }
    written
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn height(kind: PanelKind) -> u32 {
    match kind {
        PanelKind::Stat | PanelKind::Word => 4,
        PanelKind::Lines | PanelKind::Stacked | PanelKind::Bars | PanelKind::Table | PanelKind::States(_) => {
            8
        }
        PanelKind::Matrix { .. } => 16,
    }
}

fn written(panel: &Panel, variables: &[Variable], id: usize, place: Value) -> Value {
    let instant = !matches!(panel.kind, PanelKind::Lines | PanelKind::Stacked | PanelKind::States(_));
    let as_table = matches!(panel.kind, PanelKind::Table | PanelKind::Matrix { .. });
    let target = |(letter, (expression, legend)): (char, &(&str, &str))| {
        json!({
            "refId": letter.to_string(), "datasource": source(), "editorMode": "code",
            "expr": chosen(expression, variables), "legendFormat": if legend.is_empty() { "__auto" } else { legend },
            "instant": instant, "range": !instant, "format": if as_table { "table" } else { "time_series" },
        })
    };
    let targets: Vec<Value> = ('A'..='Z').zip(panel.queries).map(target).collect();
    let (kind, options) = drawing(panel.kind);
    json!({
        "id": id, "type": kind, "title": panel.title, "description": panel.help, "gridPos": place,
        "datasource": source(), "targets": targets, "options": options,
        "transformations": transformations(panel),
        "fieldConfig": {"defaults": defaults(panel), "overrides": []},
    })
}

/// Grafana's name of a kind, and its options.
fn drawing(kind: PanelKind) -> (&'static str, Value) {
    let reduced = |values: bool| json!({"calcs": ["lastNotNull"], "fields": "", "values": values});
    match kind {
        PanelKind::Stat | PanelKind::Word => (
            "stat",
            json!({
                "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
                "percentChangeColorMode": "standard", "showPercentChange": false, "wideLayout": true,
                "reduceOptions": reduced(false),
                "textMode": if kind == PanelKind::Word { "name" } else { "auto" },
            }),
        ),
        PanelKind::Lines | PanelKind::Stacked => (
            "timeseries",
            json!({
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }),
        ),
        PanelKind::States(_) => (
            "state-timeline",
            json!({
                "mergeValues": true, "showValue": "auto", "alignValue": "left", "rowHeight": 0.9,
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
                "tooltip": {"mode": "single", "sort": "none"},
            }),
        ),
        PanelKind::Bars => (
            "bargauge",
            json!({
                "displayMode": "basic", "orientation": "horizontal", "reduceOptions": reduced(false),
                "showUnfilled": true, "valueMode": "color", "minVizHeight": 16, "maxVizHeight": 300, "minVizWidth": 8,
                "namePlacement": "auto", "sizing": "auto",
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": false, "calcs": []},
            }),
        ),
        PanelKind::Table | PanelKind::Matrix { .. } => (
            "table",
            json!({"showHeader": true, "showTypeIcons": false, "cellHeight": "sm", "frameIndex": 0}),
        ),
    }
}

fn transformations(panel: &Panel) -> Value {
    match panel.kind {
        PanelKind::Table => {
            // Grafana calls the values of the only query `Value`, and those of several `Value #A`, `Value #B`.
            let named = ('A'..='Z').zip(panel.queries).filter(|(_, (_, column))| !column.is_empty());
            let names: serde_json::Map<String, Value> = named
                .map(|(letter, (_, column))| match panel.queries.len() {
                    1 => ("Value".to_owned(), json!(column)),
                    _ => (format!("Value #{letter}"), json!(column)),
                })
                .collect();
            json!([
                {"id": "merge", "options": {}},
                {"id": "organize", "options": {"excludeByName": {"Time": true}, "indexByName": {}, "renameByName": names}},
            ])
        }
        PanelKind::Matrix { rows, columns } => json!([
            {"id": "groupingToMatrix", "options": {
                "columnField": columns, "rowField": rows, "valueField": "Value", "emptyValue": "null",
            }},
        ]),
        _ => json!([]),
    }
}

fn defaults(panel: &Panel) -> Value {
    let unit = match panel.is {
        Is::Number | Is::Fault => "short",
        Is::PerSecond => "cps",
        Is::Seconds => "s",
        Is::Bytes => "bytes",
        Is::Share => "percentunit",
    };
    let base = json!({"color": panel.base, "value": null});
    let further =
        panel.steps.iter().map(|ColourStep(value, colour)| json!({"color": colour, "value": value}));
    let steps: Vec<Value> = std::iter::once(base).chain(further).collect();
    let mappings = match panel.kind {
        PanelKind::States(states) => {
            let texts: serde_json::Map<String, Value> = states
                .iter()
                .zip(0..)
                .map(|((value, text, colour), at): (_, u32)| {
                    (value.to_string(), json!({"text": text, "color": colour, "index": at}))
                })
                .collect();
            json!([{"type": "value", "options": texts}])
        }
        _ => json!([]),
    };
    let colour = match panel.kind {
        PanelKind::Matrix { .. } => json!({"mode": "continuous-blues"}),
        PanelKind::Lines | PanelKind::Stacked => json!({"mode": "palette-classic"}),
        _ => json!({"mode": "thresholds"}),
    };
    let custom = match panel.kind {
        PanelKind::Lines | PanelKind::Stacked => json!({
            "drawStyle": "line", "lineWidth": 1, "showPoints": "never", "spanNulls": false, "axisSoftMin": 0,
            "fillOpacity": if panel.kind == PanelKind::Stacked { 30 } else { 5 },
            "stacking": {"mode": if panel.kind == PanelKind::Stacked { "normal" } else { "none" }, "group": "A"},
            "thresholdsStyle": {"mode": if panel.steps.is_empty() { "off" } else { "dashed" }},
        }),
        PanelKind::States(_) => json!({"fillOpacity": 70, "lineWidth": 0}),
        PanelKind::Matrix { .. } => {
            json!({"align": "auto", "inspect": false, "cellOptions": {"type": "color-background", "mode": "basic"}})
        }
        PanelKind::Table => json!({"align": "auto", "inspect": false, "cellOptions": {"type": "auto"}}),
        _ => json!({}),
    };
    let mut defaults = json!({
        "unit": unit, "color": colour, "custom": custom, "mappings": mappings,
        "thresholds": {"mode": "absolute", "steps": steps},
    });
    if panel.none_is_good {
        defaults["noValue"] = json!("none");
    }
    if panel.leads_to_servers {
        defaults["links"] = json!([{
            "title": "Servers of ${__field.labels.serves}", "targetBlank": false,
            "url": "/d/kgfleet-fleet?${release:queryparam}&var-serves=${__field.labels.serves}",
        }]);
    }
    if panel.is == Is::Share {
        (defaults["min"], defaults["max"]) = (json!(0), json!(1));
    }
    defaults
}
