//! The container: a tar in zstd, as the one file of a zip archive that is encrypted with AES-256.
//!
//! The tar archive has the manifest first and then every entry, sorted, with fixed times and modes, so that equal
//! parts give equal archives. Each layer is a standard format: `7z x -so -pPASSWORD PACK | zstd -d | tar t` works.

use std::io::{Cursor, Read, Write};

use results::password::Password;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{AesMode, CompressionMethod, ZipArchive, ZipWriter};

use crate::error::PackError;
use crate::header::MANIFEST_PATH;
use crate::manifest::{Manifest, sha256_hex};
use crate::parts::Parts;

/// Maximum size of an unpacked pack in bytes; a decompression bomb is refused beyond it.
pub const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// Longest sealed file in bytes: content that does not compress gets longer by some hundred bytes in 128 KiB.
pub const SEALED_BYTES_MAX: u64 = UNPACKED_BYTES_MAX + (4 << 20);

/// Compression level: high, because packs are sealed rarely and downloaded often, but below the memory-hungry ones.
const ZSTD_LEVEL: i32 = 19;

/// The name of the one file in the archive. Names are not encrypted, so it says nothing of the content.
const MEMBER: &str = "pack.tar.zst";

/// First bytes of a zip archive.
const MAGIC: &[u8] = b"PK\x03\x04";

/// Compression level of [`seal_quickly`].
const QUICK_ZSTD_LEVEL: i32 = 3;

/// [Seals](seal) parts in a fraction of the time, into a larger file. For packs that are needed at once and read a few
/// times.
///
/// # Errors
/// As for [`seal`].
pub fn seal_quickly(parts: &Parts, password: &Password) -> Result<Vec<u8>, PackError> {
    seal_at(parts, password, QUICK_ZSTD_LEVEL)
}

/// Seals parts with a password. Two calls give different bytes (the encryption is salted) with the same manifest.
///
/// # Errors
/// The header is missing or not valid, or encryption fails.
pub fn seal(parts: &Parts, password: &Password) -> Result<Vec<u8>, PackError> {
    seal_at(parts, password, ZSTD_LEVEL)
}

fn seal_at(parts: &Parts, password: &Password, level: i32) -> Result<Vec<u8>, PackError> {
    let manifest = Manifest::of(parts)?;
    seal_archive(parts, &manifest.to_bytes(), password, level)
        .map_err(|source| PackError::Io { path: parts.name().to_owned(), source })
}

fn seal_archive(parts: &Parts, manifest: &[u8], password: &Password, level: i32) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in std::iter::once((MANIFEST_PATH, manifest)).chain(parts.iter()) {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, path, content)?;
    }
    // In one call rather than streamed: knowing the size, zstd chooses tables that fit it.
    let packed = zstd::bulk::compress(&archive.into_inner()?, level)?;
    let mut sealed = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::DEFAULT)
        .with_aes_encryption(AesMode::Aes256, password.as_str());
    sealed.start_file(MEMBER, options)?;
    sealed.write_all(&packed)?;
    Ok(sealed.finish()?.into_inner())
}

/// Opens a sealed pack in memory: every entry is checked against the manifest, and the manifest against the header.
/// `name` appears in errors.
///
/// # Errors
/// The file is invalid, see [`PackError`].
pub fn open(name: &str, sealed: &[u8], password: &Password) -> Result<(Manifest, Parts), PackError> {
    let packed = decrypt(name, sealed, password)?;
    let archive = unpack(name, &packed)?;
    let (manifest, parts) = read_archive(name, &archive)?;
    check(&manifest, &parts)?;
    Ok((manifest, parts))
}

fn decrypt(name: &str, sealed: &[u8], password: &Password) -> Result<Vec<u8>, PackError> {
    let pack = || name.to_owned();
    if !sealed.starts_with(MAGIC) {
        return Err(PackError::NotSealed { pack: pack() });
    }
    let read = || -> Result<Vec<u8>, ZipError> {
        let mut archive = ZipArchive::new(Cursor::new(sealed))?;
        let member = archive.by_index_decrypt(0, password.as_str().as_bytes())?;
        let mut packed = Vec::new();
        // Nothing is compressed here, so what was sealed is shorter than the file.
        member.take(sealed.len() as u64).read_to_end(&mut packed)?;
        Ok(packed)
    };
    read().map_err(|error| match error {
        ZipError::InvalidPassword => PackError::WrongPassword { pack: pack() },
        other => PackError::Damaged { pack: pack(), message: other.to_string() },
    })
}

fn unpack(name: &str, packed: &[u8]) -> Result<Vec<u8>, PackError> {
    let damaged =
        |error: std::io::Error| PackError::Damaged { pack: name.to_owned(), message: error.to_string() };
    let decoder = zstd::Decoder::new(packed).map_err(damaged)?;
    let mut archive = Vec::new();
    // One byte more than allowed distinguishes "exactly full" from "too large".
    decoder.take(UNPACKED_BYTES_MAX + 1).read_to_end(&mut archive).map_err(damaged)?;
    if archive.len() as u64 > UNPACKED_BYTES_MAX {
        return Err(PackError::TooLarge { pack: name.to_owned(), limit_bytes: UNPACKED_BYTES_MAX });
    }
    Ok(archive)
}

fn read_archive(name: &str, archive: &[u8]) -> Result<(Manifest, Parts), PackError> {
    let damaged =
        |error: std::io::Error| PackError::Damaged { pack: name.to_owned(), message: error.to_string() };
    let mut archive = tar::Archive::new(archive);
    let mut manifest = None;
    let mut parts = Parts::new(name);
    for item in archive.entries().map_err(damaged)? {
        let mut item = item.map_err(damaged)?;
        let path = String::from_utf8_lossy(&item.path_bytes()).into_owned();
        let mut content = Vec::new();
        item.read_to_end(&mut content).map_err(damaged)?;
        match &manifest {
            // The manifest comes first, so that a newer version is recognised before anything else is checked.
            None if path == MANIFEST_PATH => manifest = Some(Manifest::from_bytes(name, &content)?),
            None => break,
            Some(_) => parts.insert(&path, content)?,
        }
    }
    let manifest = manifest
        .ok_or_else(|| PackError::MissingEntry { pack: name.to_owned(), entry: MANIFEST_PATH.to_owned() })?;
    Ok((manifest, parts))
}

/// Compares entry by entry, so that the error can name the entry; then the whole.
fn check(manifest: &Manifest, parts: &Parts) -> Result<(), PackError> {
    let pack = || parts.name().to_owned();
    for entry in &manifest.entries {
        let content = parts
            .get(&entry.path)
            .ok_or_else(|| PackError::MissingEntry { pack: pack(), entry: entry.path.clone() })?;
        if content.len() as u64 != entry.bytes || sha256_hex(content) != entry.sha256 {
            return Err(PackError::HashMismatch { pack: pack(), entry: entry.path.clone() });
        }
    }
    for (path, _) in parts.iter() {
        if !manifest.entries.iter().any(|entry| entry.path == path) {
            return Err(PackError::UnlistedEntry { pack: pack(), entry: path.to_owned() });
        }
    }
    if parts.header()? != manifest.header {
        return Err(parts.invalid(MANIFEST_PATH, "it differs from `pack.toml`"));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::header::HEADER_PATH;
    use crate::manifest::FORMAT_VERSION;

    pub const HEADER: &str = r#"
        name = "test"
        version = "1"
        licence = "CC0-1.0"
        description = "A pack for tests."
        provenance = "Written for tests."
        canary = "none"
        groups = []
    "#;

    fn parts(files: &[(&str, &[u8])]) -> Parts {
        let mut parts = Parts::new("test");
        parts.insert(HEADER_PATH, HEADER.as_bytes()).unwrap();
        for (path, content) in files {
            parts.insert(path, *content).unwrap();
        }
        parts
    }

    fn edited(
        manifest: impl FnOnce(&mut serde_json::Value),
        sealed: &Parts,
    ) -> Result<(Manifest, Parts), PackError> {
        let password = Password::new("somebody's");
        let mut value = serde_json::to_value(Manifest::of(sealed).unwrap()).unwrap();
        manifest(&mut value);
        let bytes = seal_archive(sealed, value.to_string().as_bytes(), &password, ZSTD_LEVEL).unwrap();
        open("test", &bytes, &password)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_sealed_opens_with_the_same_manifest(
            files in prop::collection::btree_map("[a-z]{1,12}(/[a-z0-9._-]{1,12})?x", prop::collection::vec(any::<u8>(), 0..2000), 0..8),
        ) {
            let mut original = parts(&[]);
            for (path, content) in &files {
                // A path of the strategy may be refused (`a/.x`); the rest is what is sealed.
                let _ = original.insert(path, content.as_slice());
            }
            let password = Password::new("somebody's");
            let (first, second) = (seal(&original, &password).unwrap(), seal(&original, &password).unwrap());
            prop_assert_ne!(&first, &second, "the encryption is salted");
            let (manifest, opened) = open("test", &first, &password).unwrap();
            prop_assert_eq!(&opened, &original);
            prop_assert_eq!(manifest.hash(), Manifest::of(&original).unwrap().hash());
            prop_assert_eq!(manifest.hash(), open("test", &second, &password).unwrap().0.hash());
        }

        #[test]
        fn a_changed_byte_or_a_cut_is_noticed(position in any::<prop::sample::Index>(), flip in 1..=255u8) {
            let password = Password::new("somebody's");
            let sealed = seal(&parts(&[("a.txt", b"some content")]), &password).unwrap();
            let at = position.index(sealed.len());
            let mut changed = sealed.clone();
            changed[at] ^= flip;
            for bytes in [&changed[..], &sealed[..at]] {
                // What a zip archive says of its file beside the content, such as its time, changes nothing.
                let error = match open("test", bytes, &password) {
                    Ok((_, opened)) => {
                        prop_assert_eq!(opened, parts(&[("a.txt", b"some content")]));
                        continue;
                    }
                    Err(error) => error,
                };
                prop_assert!(
                    matches!(
                        error,
                        PackError::NotSealed { .. } | PackError::WrongPassword { .. } | PackError::Damaged { .. }
                    ),
                    "{error:?}"
                );
                prop_assert!(error.to_string().starts_with("test: "));
            }
        }
    }

    #[test]
    fn another_password_does_not_open_a_pack() {
        let (ours, theirs) = (Password::new("ours"), Password::new("theirs"));
        let sealed = seal(&parts(&[]), &ours).unwrap();
        let error = open("test", &sealed, &theirs).unwrap_err();
        assert!(matches!(error, PackError::WrongPassword { .. }), "{error}");
        let error = open("test", b"no zip archive", &ours).unwrap_err();
        assert!(matches!(error, PackError::NotSealed { .. }), "{error}");
    }

    #[test]
    fn a_newer_version_is_refused_for_that_reason() {
        let error = edited(
            |manifest| {
                manifest["formatVersion"] = (FORMAT_VERSION + 1).into();
                manifest["header"] = "something that only the newer version knows".into();
            },
            &parts(&[]),
        )
        .unwrap_err();
        assert!(matches!(error, PackError::Newer { found: 2, known: 1, .. }), "{error}");
        assert!(error.to_string().contains("please update"), "{error}");
    }

    #[test]
    fn a_manifest_that_does_not_fit_its_entries_names_the_entry() {
        let two = parts(&[("a.txt", b"a"), ("b.txt", b"b")]);
        let error = edited(|m| m["entries"][0]["sha256"] = "0".repeat(64).into(), &two).unwrap_err();
        assert!(matches!(&error, PackError::HashMismatch { entry, .. } if entry == "a.txt"), "{error}");

        let error = edited(|m| m["entries"].as_array_mut().unwrap().truncate(1), &two).unwrap_err();
        assert!(matches!(&error, PackError::UnlistedEntry { entry, .. } if entry == "b.txt"), "{error}");

        let error = edited(|m| m["entries"][1]["path"] = "c.txt".into(), &two).unwrap_err();
        assert!(matches!(&error, PackError::MissingEntry { entry, .. } if entry == "c.txt"), "{error}");

        let error = edited(|m| m["header"]["protected"] = true.into(), &two).unwrap_err();
        assert!(matches!(&error, PackError::Invalid { entry, .. } if entry == MANIFEST_PATH), "{error}");
    }

    #[test]
    fn unknown_keys_of_the_header_are_errors() {
        let mut parts = Parts::new("test");
        parts.insert(HEADER_PATH, format!("protectd = true\n{HEADER}").into_bytes()).unwrap();
        let error = seal(&parts, &Password::new("ours")).unwrap_err().to_string();
        assert!(error.contains("pack.toml") && error.contains("protectd"), "{error}");
    }
}
