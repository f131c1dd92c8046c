//! The authority of a release, and the certificates that it signs for its coordinator. Their keys are made here and are kept in
//! the Secrets only. A certificate that somebody else made stays as it is; others are signed anew when most of their time is
//! over or when they are wanted for other names.

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

/// Years that an authority is valid. Whoever trusts it would have to be told of another one.
const AUTHORITY_YEARS: i32 = 10;

/// When a certificate is to be signed anew, and for which names it is.
const RENEW_AFTER: &str = "kgfleet/renew-after";
const NAMES: &str = "kgfleet/names";

/// A certificate that is wanted. Times count by the day.
#[derive(Clone, Debug)]
pub struct CertificateWish {
    pub names: Vec<String>,
    pub from: Timestamp,
    pub until: Timestamp,
    pub renew_after: Timestamp,
}

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
        let until = now.to_zoned(TimeZone::UTC).checked_add(AUTHORITY_YEARS.years())?;
        valid(&mut params, now, until.timestamp());
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

    /// A Secret with the certificate that is wanted.
    pub fn sign(&self, wish: &CertificateWish) -> anyhow::Result<SecretObject> {
        let mut params = CertificateParams::new(wish.names.clone())
            .with_context(|| format!("--tls-name: one of {} is no name", wish.names.join(", ")))
            .map_err(Exit::usage)?;
        params.distinguished_name.push(DnType::CommonName, format!("{}-coordinator", self.prefix));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params, wish.from, wish.until);
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(subject(&self.prefix)?, &self.key);
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let secret = SecretObject::new(format!("{}-tls", self.prefix), "kubernetes.io/tls");
        Ok(secret
            .with("ca.crt", &*self.certificate)
            .with("tls.crt", certificate)
            .with("tls.key", key.serialize_pem())
            .annotated(RENEW_AFTER, wish.renew_after.to_string())
            .annotated(NAMES, wish.names.join(",")))
    }
}

/// Why a kept certificate stays as it is; none if it is to be signed anew.
pub fn stays(kept: &KeptSecret, wish: &CertificateWish, now: Timestamp) -> Option<String> {
    let Some(renew_after) = kept.annotation(RENEW_AFTER).and_then(|text| text.parse::<Timestamp>().ok())
    else {
        return Some("it was made by somebody else, who also renews it".to_owned());
    };
    let same_names = kept.annotation(NAMES) == Some(&*wish.names.join(","));
    (same_names && now < renew_after).then(|| format!("it is renewed after {renew_after}"))
}

/// Says when a certificate is valid, by the day.
fn valid(params: &mut CertificateParams, from: Timestamp, until: Timestamp) {
    let [from, until] = [from, until].map(|at| {
        let date = at.to_zoned(TimeZone::UTC).date();
        // Months and days are small positive numbers.
        date_time_ymd(i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
    });
    params.not_before = from;
    params.not_after = until;
}
