//! Errors about certificate files name the file and the step.

use holdfast_net::tls::{ClientTls, Error, ServerTls};

use crate::certificates::{Authority, Folder};

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let pair = ca.server(&folder, "localhost");
    let nowhere = folder.path().join("nowhere.pem");
    for (error, what) in [
        (ServerTls::from_files(&nowhere, &pair.key, &ca.file), "certificate"),
        (ServerTls::from_files(&pair.certificate, &nowhere, &ca.file), "private key"),
        (ServerTls::from_files(&pair.certificate, &pair.key, &nowhere), "CA certificate"),
    ] {
        let shown = error.expect_err("no such file").to_string();
        assert!(shown.starts_with(&format!("could not read the {what} {}: ", nowhere.display())), "{shown}");
    }
}

#[test]
fn a_file_without_the_right_pem_section_is_named() {
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let pair = ca.server(&folder, "localhost");
    let text = folder.write("text.pem", "hello\n");
    let damaged = folder.write("damaged.pem", "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n");
    let hollow = folder.write("hollow.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let error = |certificate, key, ca| ServerTls::from_files(certificate, key, ca).expect_err("must be refused");
    assert!(matches!(error(&text, &pair.key, &ca.file), Error::Nothing { what: "certificate", .. }));
    assert!(matches!(error(&pair.certificate, &text, &ca.file), Error::Nothing { what: "private key", .. }));
    assert!(matches!(error(&pair.certificate, &pair.certificate, &ca.file), Error::Nothing { .. }));
    assert!(matches!(error(&damaged, &pair.key, &ca.file), Error::Pem { .. }));
    assert!(matches!(error(&hollow, &pair.key, &ca.file), Error::Pair { .. }));
    assert!(matches!(error(&pair.certificate, &pair.key, &hollow), Error::Authority { .. }));
}

#[test]
fn a_key_of_another_certificate_is_refused_on_both_sides() {
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let (one, other) = (ca.server(&folder, "one"), ca.server(&folder, "other"));
    let server = ServerTls::from_files(&one.certificate, &other.key, &ca.file).expect_err("not its key");
    let client = ClientTls::from_files(&ca.file, Some((&one.certificate, &other.key)), None).expect_err("not its key");
    for error in [server, client] {
        assert!(matches!(&error, Error::Mismatch { key, .. } if *key == other.key), "{error}");
    }
    assert!(matches!(
        ClientTls::from_files(&ca.file, None, Some("not a name")),
        Err(Error::ServerName { text }) if text == "not a name"
    ));
}
