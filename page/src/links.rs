//! What a page needs to know beyond the coordinator: prices, and where its dashboards are.

use domain::RunId;
use report::costs::Prices;
use url::Url;

/// The dashboards of this project, by the identifiers that their files give them.
const RUN_DASHBOARD: &str = "d/kgfleet-run";

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Links {
    pub prices: Prices,
    /// Where Grafana serves this project's dashboards.
    pub dashboards: Option<DashboardUrl>,
}

impl Links {
    /// The dashboard of a run.
    pub(crate) fn dashboard_of(&self, run: &RunId) -> Option<String> {
        let DashboardUrl(base) = self.dashboards.as_ref()?;
        let mut url = base.join(RUN_DASHBOARD).ok()?;
        url.query_pairs_mut().append_pair("var-run", run.as_str());
        Some(url.into())
    }
}

/// The address of Grafana.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardUrl(Url);

/// An address that is none of a web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDashboardUrl(String);

impl std::fmt::Display for InvalidDashboardUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]", self.0)
    }
}

impl std::error::Error for InvalidDashboardUrl {}

impl std::str::FromStr for DashboardUrl {
    type Err = InvalidDashboardUrl;

    fn from_str(text: &str) -> Result<Self, InvalidDashboardUrl> {
        // A base whose path does not end in a slash would lose its last part.
        let url = Url::parse(&format!("{}/", text.trim_end_matches('/')));
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_plain =
            |url: &Url| url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let url = url.ok().filter(|url| is_web(url) && is_plain(url));
        url.map(Self).ok_or_else(|| InvalidDashboardUrl(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_leads_to_its_own_dashboard() {
        let links = |base: &str| Links { dashboards: Some(base.parse().unwrap()), ..Links::default() };
        let to = |base: &str| links(base).dashboard_of(&"a b&c".into()).unwrap();
        assert_eq!(to("https://grafana.example"), "https://grafana.example/d/kgfleet-run?var-run=a+b%26c");
        assert_eq!(to("http://h:3000/grafana/"), "http://h:3000/grafana/d/kgfleet-run?var-run=a+b%26c");
        for wrong in ["javascript:alert(1)", "grafana.example", "https://", "https://a?x=1", "https://u@a"] {
            assert!(wrong.parse::<DashboardUrl>().is_err(), "{wrong}");
        }
    }
}
