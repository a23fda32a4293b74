//! TLS to the server.

use std::collections::BTreeMap;
use std::fs;

use holdfast_common::system::System;
use holdfast_tests_postgres::Server;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::shop::{Role, Shop, ran, reading};

#[test]
fn a_server_is_verified_by_its_certificate_and_its_name() {
    let made = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let ((right, key), (wrong, _)) = (made("localhost"), made("localhost"));
    let shop = Shop::alone(Server::start().with_tls(&right, &key));
    let (trusted, other) = (shop.folder.0.join("right.pem"), shop.folder.0.join("wrong.pem"));
    fs::write(&trusted, &right).unwrap();
    fs::write(&other, &wrong).unwrap();
    let (trusted, other) = (trusted.to_str().unwrap(), other.to_str().unwrap());
    let asked = |host: &str, more: &[(&'static str, &str)]| {
        let mut said =
            BTreeMap::from([("PGUSER", Role::Inspect.name().to_owned()), ("PGPASSWORD", Role::Inspect.password())]);
        said.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let mut order = shop.to(1, "0001");
        if let System::Postgres(system) = &mut order.system {
            system.server = Some(format!("{host}:{}", shop.server.port()));
        }
        shop.command(&order, &said)
    };
    let _ = reading(&asked("localhost", &[("PGSSLROOTCERT", trusted)]).output().unwrap());
    for (host, said) in [
        ("localhost", ("PGSSLROOTCERT", other)),
        ("127.0.0.1", ("PGSSLROOTCERT", trusted)),
        ("localhost", ("PGSSLMODE", "require")),
        ("localhost", ("PGSSLROOTCERT", "/nowhere")),
    ] {
        let (exit, text) = ran(asked(host, &[said]));
        assert_eq!(exit, Some(78), "{host} {said:?}: {text}");
    }
    let plain = Shop::new();
    let said = BTreeMap::from([("PGUSER", "x".to_owned()), ("PGSSLROOTCERT", trusted.to_owned())]);
    let (exit, text) = ran(plain.command(&plain.to(1, "0001"), &said));
    assert_eq!(exit, Some(78), "a server without TLS gets nothing: {text}");
}

/// An authority, and what it says of names.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(parameters, key) }
    }

    /// A certificate for that name, and its key.
    fn named(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        (parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

#[test]
fn a_role_can_come_with_a_certificate_in_place_of_a_password() {
    let authority = Authority::new();
    let (server, key) = authority.named("localhost");
    let role = Role::Inspect.name();
    let shop = Shop::alone(Server::start().with_tls(&server, &key).with_certificates_of(&authority.pem, role));
    let set = shop.folder.0.join("set");
    fs::create_dir(&set).unwrap();
    let ((own, own_key), (other, other_key)) = (authority.named(role), authority.named(Role::Fence.name()));
    for (name, text) in [("ca", &authority.pem), ("own", &own), ("own.key", &own_key), ("other", &other)] {
        fs::write(set.join(name), text).unwrap();
    }
    fs::write(set.join("other.key"), other_key).unwrap();
    let asked = |files: &[(&'static str, &str)]| {
        let mut said = BTreeMap::from([("PGHOST", "localhost".to_owned()), ("PGUSER", role.to_owned())]);
        said.insert("HOLDFAST_CREDENTIALS", set.to_str().unwrap().to_owned());
        said.extend([("PGSSLROOTCERT", "ca")].iter().chain(files).map(|(key, value)| (*key, (*value).to_owned())));
        let mut order = shop.to(1, "0001");
        if let System::Postgres(system) = &mut order.system {
            system.server = Some(format!("localhost:{}", shop.server.port()));
        }
        shop.command(&order, &said)
    };
    let _ = reading(&asked(&[("PGSSLCERT", "own"), ("PGSSLKEY", "own.key")]).output().unwrap());
    for (files, why) in [
        (vec![], "certificate"),
        (vec![("PGSSLCERT", "other"), ("PGSSLKEY", "other.key")], "28000"),
        (vec![("PGSSLCERT", "own"), ("PGSSLKEY", "other.key")], "could not use"),
        (vec![("PGSSLCERT", "own"), ("PGSSLKEY", "own")], "it holds no private key, as PEM"),
        (vec![("PGSSLCERT", "own.key"), ("PGSSLKEY", "own.key")], "it holds no certificate, as PEM"),
        (vec![("PGSSLCERT", "own"), ("PGSSLKEY", "/nowhere")], "could not use /nowhere"),
        (vec![("PGSSLCERT", "own")], "PGSSLCERT and PGSSLKEY belong together"),
    ] {
        let (exit, text) = ran(asked(&files));
        assert_eq!(exit, Some(78), "{files:?}: {text}");
        assert!(text.contains(why), "{files:?}: {text}");
    }
}
