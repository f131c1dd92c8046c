//! Connections to Redis: one server, a primary found by Sentinel, or a cluster; with or without TLS.

use std::path::PathBuf;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::cluster::{ClusterClient, ClusterConfig};
use ::redis::cluster_async::ClusterConnection;
use ::redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use ::redis::{
    AsyncConnectionConfig, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisError, RedisResult, ScriptInvocation, TlsCertificates, TlsMode, Value,
};
use deadpool_redis::{Manager, Pool, PoolError, Runtime};
use tokio::sync::Mutex;

use crate::error::{Error, Result};

/// Address and connection options of Redis.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// One of
    /// - `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `redis+unix://PATH`: one server,
    /// - `redis+sentinel://[USER:PASSWORD@]SENTINEL:PORT[,SENTINEL:PORT…]/SERVICE`: the primary of that service,
    ///   with the user's name and password on the server and none on the sentinels,
    /// - `redis+cluster://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]`: a cluster, from any of its nodes.
    ///
    /// With `rediss` instead of `redis`, all connections use TLS. The process must have installed its rustls provider
    /// before.
    pub url: String,
    /// A PEM file with the authority that signed the server's certificate; the system's authorities otherwise.
    pub ca_file: Option<PathBuf>,
    /// PEM files with the client certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Maximum number of connections to one server; a Sentinel or cluster link shares one connection per node.
    pub connections: usize,
    /// Response timeout. The client library's default of 500 ms is less than a busy server may take for a long
    /// script, and an abandoned call may still be carried out.
    pub response_timeout: Duration,
}

impl RedisOptions {
    /// Options for this address, everything else at its default: 16 connections, 5 s.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca_file: None,
            identity: None,
            connections: 16,
            response_timeout: Duration::from_secs(5),
        }
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A link to Redis. It connects on the first call, so that a coordinator can start while Redis is unreachable.
pub(super) enum Link {
    /// A pool, because a script on one connection must not delay the others.
    Server(Pool),
    /// Shares one connection to the primary.
    Sentinel(Box<Sentinel>),
    /// Finds the nodes and reconnects by itself; clones share its connections.
    Cluster(ClusterConnection),
}

impl Link {
    pub(super) fn new(options: &RedisOptions) -> Result<Self> {
        let (scheme, rest) = options.url.split_once("://").ok_or_else(|| bad_url("it has no `://`"))?;
        let tls = scheme.starts_with("rediss");
        let plain = if tls { "rediss" } else { "redis" };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(options.response_timeout));
        let link = match scheme {
            "redis+sentinel" | "rediss+sentinel" => Self::sentinel(plain, rest, options, config),
            "redis+cluster" | "rediss+cluster" => Self::cluster(plain, rest, options),
            _ => Self::server(tls, options, config),
        };
        link.map_err(|error| match error {
            Refused::Redis(error) => bad_url(&error.to_string()),
            Refused::Queue(error) => error,
        })
    }

    fn server(tls: bool, options: &RedisOptions, config: AsyncConnectionConfig) -> Tried<Self> {
        let info = options.url.as_str().into_connection_info()?;
        let info = match certificates(options)? {
            Some(certificates) if tls => {
                ::redis::Client::build_with_tls(info, certificates)?.get_connection_info().clone()
            }
            _ => info,
        };
        let pool = Pool::builder(Manager::new_with_config(info, config)?)
            .max_size(options.connections)
            .wait_timeout(Some(options.response_timeout))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .recycle_timeout(Some(options.response_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| bad_url(&error.to_string()))?;
        Ok(Self::Server(pool))
    }

    fn sentinel(
        plain: &str,
        rest: &str,
        options: &RedisOptions,
        config: AsyncConnectionConfig,
    ) -> Tried<Self> {
        let (nodes, service) =
            rest.rsplit_once('/').ok_or_else(|| bad_url("the service is missing after `/`"))?;
        let nodes = nodes_of(plain, nodes)?;
        let login = nodes[0].redis_settings().clone();
        let addresses = nodes.iter().map(|node| node.addr().clone());
        let mut builder = SentinelClientBuilder::new(addresses, service, SentinelServerType::Master)?;
        if let Some(user) = login.username() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = login.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if matches!(nodes[0].addr(), ConnectionAddr::TcpTls { .. }) {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
            if let Some(certificates) = certificates(options)? {
                builder = builder
                    .set_client_to_redis_certificates(certificates.clone())
                    .set_client_to_sentinel_certificates(certificates);
            }
        }
        let client = Mutex::new(builder.build()?);
        Ok(Self::Sentinel(Box::new(Sentinel { client, open: Mutex::new(None), config })))
    }

    fn cluster(plain: &str, rest: &str, options: &RedisOptions) -> Tried<Self> {
        let mut builder = ClusterClient::builder(nodes_of(plain, rest)?);
        if let Some(certificates) = certificates(options)? {
            builder = builder.certs(certificates);
        }
        let config = ClusterConfig::new()
            .set_connection_timeout(CONNECT_TIMEOUT)
            .set_response_timeout(options.response_timeout);
        Ok(Self::Cluster(builder.build()?.get_pending_async_connection_with_config(config)))
    }

    /// Runs a script.
    pub(super) async fn invoke(&self, script: &ScriptInvocation<'_>) -> Tried<Vec<Value>> {
        match self {
            Self::Server(pool) => Ok(script.invoke_async(&mut pool.get().await?).await?),
            Self::Cluster(cluster) => Ok(script.invoke_async(&mut cluster.clone()).await?),
            Self::Sentinel(sentinel) => {
                let answer = script.invoke_async(&mut sentinel.primary().await?).await;
                sentinel.judge(answer).await
            }
        }
    }

    /// Sends a plain command.
    pub(super) async fn send(&self, command: &Cmd) -> Tried<Value> {
        match self {
            Self::Server(pool) => Ok(command.query_async(&mut pool.get().await?).await?),
            Self::Cluster(cluster) => Ok(command.query_async(&mut cluster.clone()).await?),
            Self::Sentinel(sentinel) => {
                let answer = command.query_async(&mut sentinel.primary().await?).await;
                sentinel.judge(answer).await
            }
        }
    }
}

/// Finds the primary through Sentinel. The sentinels are asked again when the connection fails.
pub(super) struct Sentinel {
    client: Mutex<SentinelClient>,
    open: Mutex<Option<MultiplexedConnection>>,
    config: AsyncConnectionConfig,
}

impl Sentinel {
    async fn primary(&self) -> Tried<MultiplexedConnection> {
        let mut open = self.open.lock().await;
        if let Some(connection) = open.as_ref() {
            return Ok(connection.clone());
        }
        let connection = self.client.lock().await.get_async_connection_with_config(&self.config).await?;
        Ok(open.insert(connection).clone())
    }

    /// Any failure except a script's own, or that of a server which has no room or cannot save, may mean that the primary has moved.
    async fn judge<T>(&self, answer: RedisResult<T>) -> Tried<T> {
        if let Err(error) = &answer
            && !matches!(error.code(), Some("OOM" | "MISCONF"))
        {
            *self.open.lock().await = None;
        }
        Ok(answer?)
    }
}

/// `[USER:PASSWORD@]HOST:PORT,HOST:PORT` as one address each, all with the same login.
fn nodes_of(plain: &str, list: &str) -> Tried<Vec<ConnectionInfo>> {
    let (login, hosts) = list.rsplit_once('@').map_or(("", list), |(login, hosts)| (login, hosts));
    let at = if login.is_empty() { "" } else { "@" };
    let node = |host: &str| format!("{plain}://{login}{at}{host}").into_connection_info();
    Ok(hosts.trim_end_matches('/').split(',').map(node).collect::<RedisResult<_>>()?)
}

/// An address without scheme and login.
pub(super) fn without_login(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts)
}

/// An address in a normal form, equal for equal places: without login and TLS, hosts in lower case with their ports and
/// sorted, then the number of the database.
pub(super) fn address(url: &str) -> Result<String> {
    let bad = |error: RedisError| bad_url(&error.to_string());
    let scheme = url.split_once("://").map_or(url, |(scheme, _)| scheme);
    let several = match scheme {
        "redis+sentinel" | "rediss+sentinel" => without_login(url).rsplit_once('/'),
        "redis+cluster" | "rediss+cluster" => Some((without_login(url).trim_end_matches('/'), "")),
        _ => None,
    };
    let Some((nodes, service)) = several else {
        let info = url.into_connection_info().map_err(bad)?;
        let host = match info.addr() {
            ConnectionAddr::Unix(socket) => socket.display().to_string(),
            addr => addr.to_string().to_lowercase(),
        };
        return Ok(format!("{host}/{}", info.redis_settings().db()));
    };
    let nodes = nodes_of("redis", nodes).map_err(|error| match error {
        Refused::Redis(error) => bad(error),
        Refused::Queue(error) => error,
    })?;
    let mut nodes: Vec<String> = nodes.iter().map(|node| node.addr().to_string().to_lowercase()).collect();
    nodes.sort_unstable();
    Ok(format!("{}/{service}", nodes.join(",")))
}

fn certificates(options: &RedisOptions) -> Tried<Option<TlsCertificates>> {
    let read = |file: &PathBuf| {
        std::fs::read(file).map_err(|error| Error::Unfit {
            message: format!("the certificate or key {} for Redis cannot be read: {error}", file.display()),
        })
    };
    let root_cert = options.ca_file.as_ref().map(read).transpose()?;
    let client_tls = match &options.identity {
        None => None,
        Some((certificate, key)) => {
            Some(ClientTlsConfig { client_cert: read(certificate)?, client_key: read(key)? })
        }
    };
    let some = root_cert.is_some() || client_tls.is_some();
    Ok(some.then_some(TlsCertificates { client_tls, root_cert }))
}

/// The message leaves out the address, because it may contain a password.
fn bad_url(why: &str) -> Error {
    Error::Unfit { message: format!("the Redis address cannot be used: {why}") }
}

type Tried<T> = std::result::Result<T, Refused>;

/// Why a call failed.
pub(super) enum Refused {
    Redis(RedisError),
    Queue(Error),
}

impl From<RedisError> for Refused {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Queue(error)
    }
}

impl From<PoolError> for Refused {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Redis(error),
            other => Self::Queue(Error::Unavailable { message: other.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_share_their_login() {
        let Ok(nodes) = nodes_of("redis", "user:p%40ss@a:1,b:2") else { panic!("a fine list") };
        assert_eq!(nodes.iter().map(|node| node.addr().to_string()).collect::<Vec<_>>(), ["a:1", "b:2"]);
        assert!(nodes.iter().all(|node| node.redis_settings().password() == Some("p@ss")));
    }

    #[test]
    fn messages_name_the_place_and_no_password() {
        assert_eq!(without_login("redis://user:p@ss@host:6379/0"), "host:6379/0");
        assert_eq!(without_login("rediss+sentinel://:secret@a:1,b:2/main"), "a:1,b:2/main");
        assert_eq!(without_login("redis://host"), "host");
    }

    #[test]
    fn one_place_has_one_address() {
        for (url, same) in [
            ("redis://user:p@ss@Host:6379/2", "rediss://host/2"),
            ("redis://host", "redis://host:6379/0"),
            ("redis+sentinel://:secret@b:2,a:1/main", "rediss+sentinel://a:1,b:2/main"),
            ("redis+cluster://b:2,a:1/", "redis+cluster://:secret@a:1,b:2"),
        ] {
            let (one, other) = (address(url).unwrap(), address(same).unwrap());
            assert_eq!(one, other, "{url} and {same}");
            assert!(!one.contains("secret") && !one.contains("p@ss"), "{one}");
        }
        for (url, other) in [
            ("redis://host/0", "redis://host/1"),
            ("redis://host", "redis://host:6380"),
            ("redis+sentinel://a:1/one", "redis+sentinel://a:1/two"),
        ] {
            assert_ne!(address(url).unwrap(), address(other).unwrap());
        }
    }

    #[test]
    fn a_bad_address_is_refused_without_repeating_its_password() {
        for url in [
            "nowhere",
            "redis+sentinel://:secret@host:1",
            "http://:secret@host",
            "redis+cluster://:secret@host:x",
        ] {
            let Err(error) = Link::new(&RedisOptions::new(url)) else { panic!("{url} was taken") };
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
