//! Where the server is and who connects, from the target and the host's credentials. No secret is ever part of an error.
//!
//! | question | the target | `DATABASE_URL` | `PG...` |
//! | --- | --- | --- | --- |
//! | server, database | said there: must be the same as said here | else this, required with a password | else this, required with a password |
//! | user, password, options | never | this | else this |
//!
//! | server | TLS |
//! | --- | --- |
//! | a local socket or loopback | only where `PGSSLMODE`, `PGSSLROOTCERT` or `PGSSLCERT` asks for it |
//! | any other | verified, unless `PGSSLMODE=disable` says no |
//!
//! A target that names another server than the host's credentials are for gets none of them. They go to the server that they
//! name themselves, or that the host's policy has placed the resource at (`resource.at`), and to no other.

use std::net::IpAddr;
use std::path::PathBuf;

use holdfast_common::system::Postgres;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Client, Roots, Tls};
use crate::adapters::system::{Credentials, Failure};

const PORT: u16 = 5432;

/// How to connect.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) config: Config,
    /// `None`: without TLS.
    pub(super) tls: Option<Tls>,
}

/// What is said of TLS. Files are named as the credential set has them, or by a path.
#[derive(Default)]
struct Said {
    mode: Option<String>,
    roots: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

/// `is_placed`: this host's own file lets the resource be where its target says.
pub(super) fn access(system: &Postgres, credentials: &Credentials, is_placed: bool) -> Result<Access, Failure> {
    let said = |name: &str| credentials.variable(name).filter(|text| !text.is_empty());
    let (mut config, url) = said("DATABASE_URL").map_or(Ok(Default::default()), url)?;
    fill(&mut config, &said)?;
    server(&mut config, system, is_placed)?;
    database(&mut config, system)?;
    if config.get_user().is_none() {
        return Err(Failure::Resource("the credentials name no user: PGUSER or DATABASE_URL does".to_owned()));
    }
    let tls = tls(&url.or(&said), is_local(&config), credentials)?;
    config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    Ok(Access { config, tls })
}

/// What a URL says beyond what the client knows is taken out of it: it verifies or does not, and has nothing in between.
fn url(text: &str) -> Result<(Config, Said), Failure> {
    // The cause of a failure may quote a part of it.
    let unfit =
        || Failure::Resource("DATABASE_URL is no URL like postgresql://USER:PASSWORD@HOST:PORT/DATABASE".to_owned());
    if !["postgresql://", "postgres://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Err(unfit());
    }
    let (start, query) = text.split_once('?').unwrap_or((text, ""));
    let (mut tls, mut rest) = (Said::default(), Vec::new());
    let path = |value: &str| Some(value.replace("%2F", "/").replace("%2f", "/"));
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => tls.mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => tls.roots = path(value),
            Some(("sslcert", value)) => tls.certificate = path(value),
            Some(("sslkey", value)) => tls.key = path(value),
            _ => rest.push(parameter),
        }
    }
    let plain = if rest.is_empty() { start.to_owned() } else { format!("{start}?{}", rest.join("&")) };
    let config = plain.parse().map_err(|_| unfit())?;
    Ok((config, tls))
}

impl Said {
    /// The variables say what the URL does not.
    fn or<'a>(self, said: &impl Fn(&str) -> Option<&'a str>) -> Self {
        let or = |own: Option<String>, name| own.or_else(|| said(name).map(str::to_owned));
        Self {
            mode: or(self.mode, "PGSSLMODE"),
            roots: or(self.roots, "PGSSLROOTCERT"),
            certificate: or(self.certificate, "PGSSLCERT"),
            key: or(self.key, "PGSSLKEY"),
        }
    }
}

fn fill<'a>(config: &mut Config, said: &impl Fn(&str) -> Option<&'a str>) -> Result<(), Failure> {
    if let (true, Some(host)) = (config.get_hosts().is_empty(), said("PGHOST")) {
        config.host(host);
        if let Some(port) = said("PGPORT") {
            config.port(port.parse().map_err(|_| Failure::Resource("PGPORT is no port".to_owned()))?);
        }
    }
    if let (None, Some(user)) = (config.get_user(), said("PGUSER")) {
        config.user(user);
    }
    if let (None, Some(password)) = (config.get_password(), said("PGPASSWORD")) {
        config.password(password);
    }
    if let (None, Some(database)) = (config.get_dbname(), said("PGDATABASE")) {
        config.dbname(database);
    }
    if let (None, Some(options)) = (config.get_options(), said("PGOPTIONS")) {
        config.options(options);
    }
    Ok(())
}

fn server(config: &mut Config, system: &Postgres, is_placed: bool) -> Result<(), Failure> {
    let Some(wanted) = &system.server else {
        if config.get_hosts().is_empty() {
            return Err(Failure::Resource("neither the target nor the credentials say where the server is".to_owned()));
        }
        return Ok(());
    };
    let (host, port) = wanted.rsplit_once(':').ok_or_else(|| Failure::Resource(format!("{wanted} is no server")))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().map_err(|_| Failure::Resource(format!("{wanted} is no server")))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        // Whoever declares a target would choose whom the role, its password or its certificate is shown to.
        if !is_placed {
            let text = "nothing says for which server the credentials are: the resource's `at` in this host's file does, or PGHOST";
            return Err(Failure::Resource(text.to_owned()));
        }
        config.host(host).port(port);
        return Ok(());
    }
    let is_same = config.get_hosts() == [Host::Tcp(host.to_owned())] && config.get_hostaddrs().is_empty();
    if is_same && config.get_ports().first().copied().unwrap_or(PORT) == port {
        return Ok(());
    }
    Err(Failure::Resource(format!("the target is on {wanted}, and this host's credentials are for another server")))
}

fn database(config: &mut Config, system: &Postgres) -> Result<(), Failure> {
    match (&system.database, config.get_dbname()) {
        (Some(wanted), None) => {
            config.dbname(wanted);
            Ok(())
        }
        (Some(wanted), Some(found)) if found != wanted => Err(Failure::Resource(format!(
            "the target is in database {wanted}, and this host's credentials are for {found}"
        ))),
        (Some(_) | None, Some(_)) => Ok(()),
        (None, None) => Err(Failure::Resource("neither the target nor the credentials name the database".to_owned())),
    }
}

fn tls(said: &Said, is_local: bool, credentials: &Credentials) -> Result<Option<Tls>, Failure> {
    let file = |name: &String| credentials.file(name).unwrap_or_else(|| PathBuf::from(name));
    let client = match (&said.certificate, &said.key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Client { certificate: file(certificate), key: file(key) }),
        (Some(_), None) | (None, Some(_)) => {
            return Err(Failure::Resource("PGSSLCERT and PGSSLKEY belong together, one is missing".to_owned()));
        }
    };
    let is_asked = said.roots.is_some() || client.is_some();
    let roots = match &said.roots {
        None => Roots::Machine,
        Some(name) if name == "system" => Roots::Machine,
        Some(name) => Roots::File(file(name)),
    };
    match said.mode.as_deref() {
        Some("disable") => Ok(None),
        None | Some("allow" | "prefer") if is_local && !is_asked => Ok(None),
        None | Some("allow" | "prefer" | "require" | "verify-ca" | "verify-full") => Ok(Some(Tls { roots, client })),
        Some(_) => {
            Err(Failure::Resource("PGSSLMODE is none of disable, require, verify-ca and verify-full".to_owned()))
        }
    }
}

fn is_local(config: &Config) -> bool {
    let is_loopback = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
    };
    config.get_hosts().iter().all(is_loopback) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

#[cfg(test)]
mod tests;
