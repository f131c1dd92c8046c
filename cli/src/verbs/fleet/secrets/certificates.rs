//! The authority of a release, and the certificates that it signs for its coordinator. Their keys are made here and are kept in
//! the Secrets only. A certificate that somebody else made stays as it is; others are signed anew when they are wanted for
//! other names.

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use super::api::KeptSecret;
use super::make::SecretObject;
use crate::kit::exit_code::Exit;

/// Years that an authority and its certificates are valid. Whoever trusts it would have to be told of another one.
const VALID_YEARS: i32 = 10;

/// The names that a certificate of ours is for.
const NAMES: &str = "kgfleet/names";

/// An authority with its key.
pub struct Authority {
    prefix: String,
    certificate: String,
    key: KeyPair,
}

/// What the certificate of an authority says but for its times. The same for the same release, because what is signed names it.
fn subject(prefix: &str) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name.push(DnType::CommonName, format!("{prefix} authority"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

impl Authority {
    /// A new one.
    pub fn new(prefix: &str, now: Timestamp) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = subject(prefix)?;
        valid(&mut params, now)?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { prefix: prefix.to_owned(), certificate, key })
    }

    /// The one that is kept.
    pub fn of(prefix: &str, kept: &KeptSecret) -> anyhow::Result<Self> {
        let certificate = kept.text("ca.crt")?;
        let key = KeyPair::from_pem(&kept.text("ca.key")?)
            .with_context(|| format!("the key ca.key of secret {} cannot be used", kept.name()))?;
        Ok(Self { prefix: prefix.to_owned(), certificate, key })
    }

    pub fn secret(&self) -> SecretObject {
        let secret = SecretObject::new(format!("{}-authority", self.prefix), "Opaque");
        secret.with("ca.crt", &*self.certificate).with("ca.key", self.key.serialize_pem())
    }

    /// A Secret with a certificate for these names.
    pub fn sign(&self, names: &[String], now: Timestamp) -> anyhow::Result<SecretObject> {
        let mut params = CertificateParams::new(names)
            .with_context(|| format!("--tls-name: one of {} is no name", names.join(", ")))
            .map_err(Exit::usage)?;
        params.distinguished_name.push(DnType::CommonName, format!("{}-coordinator", self.prefix));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params, now)?;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(subject(&self.prefix)?, &self.key);
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let secret = SecretObject::new(format!("{}-tls", self.prefix), "kubernetes.io/tls");
        Ok(secret
            .with("ca.crt", &*self.certificate)
            .with("tls.crt", certificate)
            .with("tls.key", key.serialize_pem())
            .annotated(NAMES, names.join(",")))
    }
}

/// Why a kept certificate stays as it is; none if it is to be signed anew.
pub fn stays(kept: &KeptSecret, names: &[String]) -> Option<&'static str> {
    match kept.annotation(NAMES) {
        None => Some("it was made by somebody else, who also renews it"),
        Some(kept) => (kept == names.join(",")).then_some("it is for these names"),
    }
}

/// Says when a certificate is valid: by the day, from the day before, because clocks differ.
fn valid(params: &mut CertificateParams, now: Timestamp) -> anyhow::Result<()> {
    let today = now.to_zoned(TimeZone::UTC);
    let [from, until] = [today.checked_sub(1.day())?, today.checked_add(VALID_YEARS.years())?].map(|at| {
        let date = at.date();
        // Months and days are small positive numbers.
        date_time_ymd(i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
    });
    (params.not_before, params.not_after) = (from, until);
    Ok(())
}
