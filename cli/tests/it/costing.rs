//! Money: what a plan will cost, what a run has cost, and what it takes to know its numbers better.

use serde_json::Value;

use crate::harness::server::MODEL;
use crate::harness::{Data, NT_TASK, Server};

/// A price of 1 for a prompt token and of 2 for one of an answer.
fn prices(data: &Data, model: &str) -> String {
    let text = format!(
        "currency = 'EUR'\n[[tokens]]\nmodels = ['{model}']\ninput = 1000000\noutput = 2000000\nas_of = '2026-01-02'\n\
         source = 'https://prices.example'\n"
    );
    data.write("prices.toml", text).to_str().unwrap().to_owned()
}

/// A configuration of the task for the model at the server, and for a simulated one.
fn configuration(data: &Data, server: &Server, iterations: u32) -> String {
    let text = format!(
        "name = 'costs'\niterations = {iterations}\ntasks = ['{NT_TASK}']\n\
         [[models]]\nlabel = '{MODEL}'\nconnector = 'openai-compatible'\nendpoint = '{}'\n\
         [[models]]\nlabel = 'free'\nmodel = '{MODEL}'\nconnector = 'simulated'\n",
        server.url()
    );
    data.write("costs.toml", text).to_str().unwrap().to_owned()
}

/// The row of the model of this name.
fn row<'a>(of: &'a Value, model: &str) -> &'a Value {
    of["rows"].as_array().unwrap().iter().find(|row| row["model"] == model).unwrap()
}

#[test]
fn money_follows_from_tokens_and_what_has_no_price_has_none() {
    let (data, server) = (Data::new(), Server::start());
    let config = configuration(&data, &server, 3);
    let prices = prices(&data, MODEL);
    data.kgfleet(&["run", &config, "--no-sandbox"]).expect(0);
    let costs = ["table", "latest", "--show", "costs", "--format", "json"];
    let found = data.kgfleet(&[&costs[..], &["--prices", &prices]].concat()).expect(0).json();
    let (paid, free) = (row(&found, MODEL), row(&found, "free"));
    let number = |name: &str| paid[name].as_f64().unwrap_or_else(|| panic!("{name} in {paid}"));
    assert!(number("answer tokens") > 0.0);
    assert_eq!(number("cost in EUR"), number("prompt tokens") + 2.0 * number("answer tokens"));
    assert_eq!(paid["source"], "https://prices.example");
    assert_eq!(free["cost in EUR"], Value::Null, "nobody bills a simulated model, whatever it is called");
    let unpriced = data.kgfleet(&costs).expect(0).json();
    assert_eq!(row(&unpriced, MODEL)["cost in USD"], Value::Null);
    // The report has the same.
    let page = data.path().join("page.html");
    let report = ["report", "latest", "--out", page.to_str().unwrap()];
    data.kgfleet(&[&report[..], &["--prices", &prices]].concat()).expect(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<section id=\"costs\">") && page.contains("https://prices.example"));
    // A plan of twice as many dialogues costs twice as much as the run that it is like.
    let plan = ["plan", &config, "--iterations", "6", "--prices", &prices, "--like", "latest", "--json"];
    let planned = data.kgfleet(&plan).expect(0).json();
    let cost = planned["models"][0]["cost_estimate"].as_f64().unwrap();
    assert!((cost - 2.0 * number("cost in EUR")).abs() <= 3.0, "{cost} {paid}");
    assert_eq!(planned["models"][1]["cost_estimate"], Value::Null);
    let told = data
        .kgfleet(&["plan", &config, "--prices", &prices, "--like", "latest", "--within", "0.001"])
        .expect(0);
    told.prints(&[
        "cost in EUR",
        "those of latest; prices of 2026-01-02",
        "the mean is known within",
        "takes about",
    ]);
}

#[test]
fn a_plan_without_other_dialogues_costs_what_published_means_say() {
    let (data, server) = (Data::new(), Server::start());
    let config = configuration(&data, &server, 10);
    let planned =
        data.kgfleet(&["plan", &config, "--prices", &prices(&data, MODEL), "--json"]).expect(0).json();
    assert_eq!(planned["models"][0]["cost_estimate"], 10.0 * (920.0 + 2.0 * 110.0));
    assert_eq!(planned["widths"], Value::Null);
    data.kgfleet(&["plan", &config]).expect(0).prints(&["no model has a price"]);
    data.kgfleet(&["plan", &config, "--within", "0.01"]).expect(2).says(&["--like"]);
    let bad = data.write("bad.toml", "currency = 'EUR'\n[[gpus]]\nkind = 'T'\nper_hour = 3\n");
    let bad = bad.to_str().unwrap();
    data.kgfleet(&["plan", &config, "--prices", bad]).expect(2).says(&["bad.toml", "as_of"]);
}

#[test]
fn hours_of_gpus_cost_what_the_table_says() {
    let data = Data::new();
    let text = format!(
        "name = 'gpus'\niterations = 36\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = 'm'\nmodel = 'sim'\n\
         connector = 'openai-compatible'\n"
    );
    let config = data.write("gpus.toml", text);
    let table = "[gpu]\nname = 'T'\nresource = 'nvidia.com/gpu'\nper_node = 2\n[dialogue]\ntokens = 100\n\
                 [models.sim]\ngpus = 2\ntokens_per_second = 1\nload_minutes = 0\n";
    let (table, config) = (data.write("table.toml", table), config.to_str().unwrap());
    let gpu =
        "currency = 'EUR'\n[[gpus]]\nkind = 'T'\nper_hour = 3\nas_of = '2026-01-02'\nsource = 'contract'\n";
    let prices = data.write("gpus-prices.toml", gpu);
    let launch = ["launch", config, "--table", table.to_str().unwrap()];
    let priced = [&launch[..], &["--prices", prices.to_str().unwrap()]].concat();
    // An hour on two GPUs, and ten seconds until the server has ended.
    data.kgfleet(&priced)
        .expect(0)
        .prints(&["EUR 6.02 for these hours, at the price of 2026-01-02 (contract)"]);
    let json = data.kgfleet(&[&priced[..], &["--json"]].concat()).expect(0).json();
    assert!((json["gpu_cost"].as_f64().unwrap() - 6.0 * 3_610.0 / 3_600.0).abs() < 1e-9, "{json}");
    let unpriced = data.kgfleet(&[&launch[..], &["--json"]].concat()).expect(0).json();
    assert_eq!(unpriced["gpu_cost"], Value::Null);
}
