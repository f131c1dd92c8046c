//! Every limit of the wire, with its unit. Both sides use the same.

use std::time::Duration;

/// Bytes of a message besides its record: its head, and generous room.
const HEAD_BYTES: usize = 64 << 10;

/// Maximum message size in bytes: the longest record with its head. The sender refuses longer ones.
pub const MESSAGE_BYTES: usize = domain::record::RECORD_BYTES_MAX + HEAD_BYTES;

/// Maximum size of a request that names a run, a worker or a pack, in bytes. All requests of readers are such.
pub const NAMING_BYTES: usize = 64 << 10;

/// Maximum size of a request with a list of numbers, in bytes: some hundred thousand.
pub const LIST_BYTES: usize = 1 << 20;

/// Maximum size of a worker's registration, in bytes: what it serves and is.
pub const REGISTRATION_BYTES: usize = 1 << 20;

/// Maximum size of a worker's report, in bytes: twenty thousand entries in each of its lists.
pub const REPORT_BYTES: usize = 16 << 20;

/// Maximum size of a submission without its pack, in bytes.
pub const SUBMISSION_BYTES: usize = CONFIGURATION_BYTES + HEAD_BYTES;

/// Packs that were sent and are kept for the submission that names them; a further one takes the place of the oldest.
pub const SENT_PACKS: usize = 2;

/// Maximum size of the records of one call in bytes: they must fit into a message, with its number and tags. Workers send
/// at most 1 MiB, or one longer record.
pub const DELIVERY_BYTES: usize = MESSAGE_BYTES - (1 << 10);

/// Size of a pack chunk in bytes.
pub const PACK_CHUNK_BYTES: usize = 1 << 20;

/// Maximum size of a sealed pack in bytes.
pub const PACK_BYTES: u64 = 256 << 20;

/// Maximum size of an error message in bytes. It travels in a header, percent-encoded to at most three times its
/// length, and HTTP/2 headers of one answer are limited to 16 KiB.
pub const ERROR_TEXT_BYTES: usize = 4 << 10;

/// Interval of keep-alive pings on a connection, used or not. Without them, a connection that the network silently
/// cut is used for ever: every call on it waits for its deadline, even when the network is back.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Timeout of a ping, after which the connection is closed.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Default deadline of a call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Extra time of a long poll beyond its wait.
pub const LONG_POLL_MARGIN: Duration = Duration::from_secs(10);

/// Maximum wait of a long poll, so that no call outlives a vanished client for long.
pub const LONG_POLL: Duration = Duration::from_secs(60);

/// Timeout for the outcome of a batch: several syncs of a slow disk.
pub const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Deadline of calls that transfer a pack, plan or rebuild a run, or read a whole record log.
pub const LONG_CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum silence of a stream before the listener gives up. Watched runs are sent about once a second.
pub const STREAM_SILENCE: Duration = Duration::from_secs(60);

/// Concurrent calls per connection; more wait.
pub const CALLS_PER_CONNECTION: u32 = 256;

/// Exports that one identity may have under way; each holds some records. Further ones wait for [`ROOM_PATIENCE`].
pub const EXPORTS_PER_IDENTITY: usize = 8;

/// Grace period for calls in progress when a server stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Maximum number of connections of a server; more are closed at once. Two per worker of a large fleet, and people.
pub const CONNECTIONS: usize = 8192;

/// Maximum number of connections from one address: a thousand workers on one machine, two each. One address cannot
/// take all.
pub const CONNECTIONS_PER_ADDRESS: usize = 4096;

/// Maximum time between the first byte of a request of HTTP/1.1 and the end of its headers.
pub const REQUEST_HEAD: Duration = Duration::from_secs(10);

/// Timeout of a TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// Maximum age of a connection without an authenticated call.
pub const UNKNOWN_PEER: Duration = Duration::from_secs(10);

/// Maximum idle time of a connection.
pub const IDLE_CONNECTION: Duration = Duration::from_secs(600);

/// Maximum time that a client may leave an answer unread before its connection is closed.
pub const SLOW_READER: Duration = Duration::from_secs(60);

/// Bytes of messages of one connection being received concurrently; more wait.
pub const DECODE_BYTES: usize = 2 * MESSAGE_BYTES;

/// Bytes of messages of all connections being received concurrently; more wait.
pub const RECEIVED_BYTES: usize = 256 << 20;

/// The part of [`RECEIVED_BYTES`] that only messages of at most [`NAMING_BYTES`] take, so that long ones do not hold up
/// reports, renewals and questions.
pub const RECEIVED_SMALL_BYTES: usize = 32 << 20;

/// Bytes that HTTP/2 accepts on a connection before a call takes them: outside the two bounds above, once per connection.
pub const WINDOW_BYTES: u32 = 256 << 10;

/// Maximum time that a message may wait for that room, and an export for its turn.
pub const ROOM_PATIENCE: Duration = Duration::from_secs(30);

/// Maximum time between the first byte of a message and its last. Our clients do not wait longer for a batch.
pub const MESSAGE_TIME: Duration = BATCH_TIMEOUT;

/// Maximum size of the headers of a call, in bytes.
pub const HEADER_BYTES: u32 = 16 << 10;

/// Maximum size of a configuration as JSON, in bytes.
pub const CONFIGURATION_BYTES: usize = 4 << 20;

/// How long a stream continues after its caller's rights were revoked.
pub const REVOKED_WITHIN: Duration = Duration::from_millis(500);
