//! Numbers of this crate against those of the libraries that the method names, frozen by `frozen/make.py`.

use benchmarks::kinds::kghalubench::numbers::rank;
use benchmarks::kinds::kghalubench::numbers::token_set::token_set_ratio;

#[derive(serde::Deserialize)]
struct Reference {
    token_set_ratio: Vec<Ratio>,
    ranks: Vec<Ranks>,
}

#[derive(serde::Deserialize)]
struct Ratio {
    first: String,
    second: String,
    ratio: f64,
}

#[derive(serde::Deserialize)]
struct Ranks {
    x: Vec<f64>,
    y: Vec<f64>,
    spearman: f64,
    kendall: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("frozen/reference.json")).unwrap()
}

#[test]
fn token_set_ratios_are_those_of_rapidfuzz() {
    let ratios = reference().token_set_ratio;
    assert!(ratios.len() > 400);
    for Ratio { first, second, ratio } in ratios {
        let ours = token_set_ratio(&first, &second);
        assert!((ours - ratio).abs() < 1e-9, "{first:?} {second:?}: {ours}, RapidFuzz {ratio}");
    }
}

#[test]
fn rank_correlations_are_those_of_scipy() {
    let ranks = reference().ranks;
    assert!(ranks.len() > 30);
    for Ranks { x, y, spearman, kendall } in ranks {
        let pairs: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        assert!((rank::spearman(&pairs).unwrap() - spearman).abs() < 1e-12);
        assert!((rank::kendall(&pairs).unwrap() - kendall).abs() < 1e-12);
    }
}
