//! Every bound of the wire, with its unit. Both sides use the same.

use std::time::Duration;

/// Bytes of a message that are not the record it carries: its head, and generous room.
const HEAD_BYTES: usize = 64 << 10;

/// Longest message in bytes: the longest record with its head. A longer one is refused by the side that would send it.
pub const MESSAGE_BYTES: usize = domain::record::RECORD_BYTES_MAX + HEAD_BYTES;

/// Bytes of one batch of records, unless one record alone is longer. Small enough that a batch passes in well under
/// a second on a slow line, so that keep-alive pings between batches are never late.
pub const BATCH_BYTES: usize = 4 << 20;

/// Longest delivery in bytes: it must fit into a message, which has a number and tags besides.
pub const DELIVERY_BYTES: usize = MESSAGE_BYTES - (1 << 10);

/// Batches of one client that were sent and not answered. With [`BATCH_BYTES`] this bounds what a client holds twice
/// to 256 MiB; usual batches are far smaller.
pub const BATCHES_IN_FLIGHT: usize = 64;

/// Batches of one stream that a server stores at the same time. More would not make a disk faster, fewer would let it
/// sync for one batch at a time.
pub const BATCHES_STORED_AT_ONCE: usize = 16;

/// Bytes of one piece of a pack.
pub const PACK_CHUNK_BYTES: usize = 1 << 20;

/// Largest sealed pack in bytes that a message stream may bring.
pub const PACK_BYTES: u64 = 256 << 20;

/// Longest text of an error in bytes. It travels in a header, percent-encoded to at most three times its length,
/// and HTTP/2 headers of one answer are limited to 16 KiB.
pub const ERROR_TEXT_BYTES: usize = 4 << 10;

/// Time between two pings on a connection, used or not. Without them a connection that a network cut silently is
/// used for ever: every call on it waits for its deadline, also when the network is back.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// How long the answer to a ping may take before the connection is given up.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a call may take unless it says more.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// What a call that waits on purpose may take beyond its wait.
pub const LONG_POLL_MARGIN: Duration = Duration::from_secs(10);

/// Longest wait of a long poll that a server grants, so that no call outlives a forgotten client for long.
pub const LONG_POLL: Duration = Duration::from_secs(60);

/// How long a batch may wait for its outcome: several syncs of a slow object store.
pub const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// How long calls that move a pack, plan or rebuild a run, or read a whole record log may take.
pub const LONG_CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a stream may stay silent before the listener gives it up. Watched runs are told about once a second.
pub const STREAM_SILENCE: Duration = Duration::from_secs(60);

/// Calls of one connection that a server works on at the same time; more wait.
pub const CALLS_PER_CONNECTION: u32 = 1024;

/// Items of a stream that were made and not sent yet.
pub const ITEMS_AHEAD: usize = 64;

/// How long a server that was asked to stop lets calls in hand go on.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
