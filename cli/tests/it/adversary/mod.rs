//! What strangers do who have something of ours to write into, or who are asked as servers of models: each test does what an
//! attacker did once with a token, a folder, an archive or an answer, and looks at what everybody else has of it.

mod keys;
mod labels;
mod logs;
mod modes;
mod records;
