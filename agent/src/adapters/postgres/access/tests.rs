use std::collections::BTreeMap;

use super::*;

fn system(server: Option<&str>, database: Option<&str>) -> Postgres {
    Postgres { schema: "shop".to_owned(), server: server.map(str::to_owned), database: database.map(str::to_owned) }
}

fn of(system: &Postgres, variables: &[(&str, &str)]) -> Result<Access, Failure> {
    let variables: BTreeMap<_, _> =
        variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    access(system, &Credentials::of(variables), false)
}

#[test]
fn the_target_says_where_and_the_credentials_say_who() {
    let shop = system(Some("db:5433"), Some("shop"));
    let bound = [("PGHOST", "db"), ("PGPORT", "5433"), ("PGUSER", "deploy"), ("PGPASSWORD", "secret")];
    let found = of(&shop, &bound).unwrap();
    assert_eq!(found.config.get_hosts(), [Host::Tcp("db".to_owned())]);
    assert_eq!((found.config.get_ports(), found.config.get_dbname()), ([5433].as_slice(), Some("shop")));
    assert_eq!((found.config.get_user(), found.config.get_password()), (Some("deploy"), Some("secret".as_bytes())));
    let url = of(&system(None, None), &[("DATABASE_URL", "postgresql://deploy:secret@db/shop"), ("PGUSER", "other")])
        .unwrap();
    assert_eq!((url.config.get_user(), url.config.get_dbname()), (Some("deploy"), Some("shop")));
    for missing in
        [vec![], vec![("PGHOST", "db"), ("PGDATABASE", "shop")], vec![("PGHOST", "db"), ("PGUSER", "deploy")]]
    {
        assert!(matches!(of(&system(None, None), &missing), Err(Failure::Resource(_))), "{missing:?}");
    }
}

#[test]
fn credentials_go_to_no_server_that_they_are_not_for() {
    let shop = system(Some("evil:5432"), Some("shop"));
    for said in [
        vec![("PGHOST", "db"), ("PGUSER", "deploy")],
        vec![("PGHOST", "evil"), ("PGPORT", "5433"), ("PGUSER", "deploy")],
        vec![("PGHOST", "/run/postgresql"), ("PGUSER", "deploy")],
        vec![("DATABASE_URL", "postgresql://deploy:secret@db/shop")],
        vec![("PGUSER", "deploy"), ("PGPASSWORD", "secret")],
        vec![("PGUSER", "deploy")],
        vec![("PGUSER", "deploy"), ("PGSSLCERT", "cert"), ("PGSSLKEY", "key")],
        vec![("PGHOST", "evil"), ("PGUSER", "deploy"), ("PGDATABASE", "other")],
    ] {
        assert!(matches!(of(&shop, &said), Err(Failure::Resource(_))), "{said:?}");
    }
    assert!(of(&shop, &[("PGHOST", "evil"), ("PGUSER", "deploy")]).is_ok());
}

#[test]
fn a_password_goes_where_the_hosts_own_file_places_the_resource() {
    let shop = system(Some("db:5433"), Some("shop"));
    let placed = |said: &[(&str, &str)]| {
        let said = said.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        access(&shop, &Credentials::of(said), true).map(|access| access.config)
    };
    let (user, password) = (("PGUSER", "deploy"), ("PGPASSWORD", "secret"));
    let found = placed(&[user, password]).unwrap();
    assert_eq!((found.get_hosts(), found.get_ports()), ([Host::Tcp("db".to_owned())].as_slice(), [5433].as_slice()));
    assert!(placed(&[user, password, ("PGHOST", "other")]).is_err(), "a set that is for another server stays so");
}

#[test]
fn tls_is_left_out_only_where_nobody_can_listen_or_the_host_says_so() {
    let roots = |host: &str, more: &[(&str, &str)]| {
        let mut said = vec![("PGHOST", host), ("PGUSER", "deploy"), ("PGDATABASE", "shop")];
        said.extend(more);
        of(&system(None, None), &said).map(|access| access.tls.map(|tls| tls.roots))
    };
    for local in ["/run/postgresql", "127.0.0.1", "::1", "localhost"] {
        assert_eq!(roots(local, &[]), Ok(None));
        assert_eq!(roots(local, &[("PGSSLMODE", "require")]), Ok(Some(Roots::Machine)));
    }
    for mode in ["allow", "prefer", "require", "verify-ca", "verify-full"] {
        assert_eq!(roots("db", &[("PGSSLMODE", mode)]), Ok(Some(Roots::Machine)));
    }
    assert_eq!(roots("db", &[]), Ok(Some(Roots::Machine)));
    assert_eq!(roots("db", &[("PGSSLMODE", "disable")]), Ok(None));
    assert!(roots("db", &[("PGSSLMODE", "off")]).is_err());
    let file = Some(Roots::File(PathBuf::from("/etc/db.pem")));
    assert_eq!(roots("localhost", &[("PGSSLROOTCERT", "/etc/db.pem")]), Ok(file.clone()));
    let url = "postgresql://deploy@db/shop?sslmode=verify-full&sslrootcert=%2Fetc%2Fdb.pem&connect_timeout=3";
    assert_eq!(
        of(&system(None, None), &[("DATABASE_URL", url)]).map(|access| access.tls.map(|tls| tls.roots)),
        Ok(file)
    );
    let elsewhere = "postgresql://deploy@localhost/shop?hostaddr=192.0.2.1";
    let found = of(&system(None, None), &[("DATABASE_URL", elsewhere)]);
    assert_eq!(found.map(|access| access.tls.map(|tls| tls.roots)), Ok(Some(Roots::Machine)));
}

#[test]
fn a_certificate_of_the_clients_own_asks_for_tls_and_comes_with_its_key() {
    let tls = |more: &[(&str, &str)]| {
        let mut said = vec![("PGHOST", "localhost"), ("PGUSER", "deploy"), ("PGDATABASE", "shop")];
        said.extend(more);
        of(&system(None, None), &said).map(|access| access.tls)
    };
    let client = Client { certificate: "/etc/us.pem".into(), key: "/etc/us.key".into() };
    let expected = Some(Tls { roots: Roots::Machine, client: Some(client) });
    assert_eq!(tls(&[("PGSSLCERT", "/etc/us.pem"), ("PGSSLKEY", "/etc/us.key")]), Ok(expected.clone()));
    let url = "postgresql://deploy@localhost/shop?sslcert=%2Fetc%2Fus.pem&sslkey=/etc/us.key";
    assert_eq!(of(&system(None, None), &[("DATABASE_URL", url)]).map(|access| access.tls), Ok(expected));
    for alone in [[("PGSSLCERT", "/etc/us.pem")], [("PGSSLKEY", "/etc/us.key")]] {
        assert!(matches!(tls(&alone), Err(Failure::Resource(_))), "{alone:?}");
    }
}

#[test]
fn no_error_tells_a_password() {
    for url in [
        "postgresql://deploy:hunter2@db:port/shop",
        "hunter2",
        "host=db password=hunter2",
        "postgresql://deploy:hunter2@db/shop?what=hunter2",
    ] {
        let Err(error) = of(&system(None, None), &[("DATABASE_URL", url)]) else { panic!("{url}") };
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
