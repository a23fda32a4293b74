use super::*;

/// Whether what a target names lies below what the host lists. What is no place lies nowhere.
fn lies(asked: &str, listed: &str) -> bool {
    let listed: Place = listed.parse().unwrap_or_else(|error| panic!("{error}"));
    asked.parse::<Place>().is_ok_and(|asked| asked.is_below(&listed))
}

const WITHIN: &[(&str, &[&str])] = &[
    (
        "https://deploy.example/api",
        &[
            "https://deploy.example/api",
            "https://deploy.example/api/",
            "https://deploy.example:443/api/v1/shop",
            "https://Deploy.EXAMPLE/api/a.b-c_d~e",
        ],
    ),
    ("https://deploy.example:8443/", &["https://deploy.example:8443", "https://deploy.example:8443/any/where"]),
    ("http://[0:0::1]:80", &["http://[::1]/api"]),
    ("ssh://git@git.example/repos/", &["ssh://git@git.example:22/repos/shop.git", "ssh://git@git.example/repos"]),
    ("ssh://git.example", &["ssh://git.example/~/shop.git"]),
    ("/srv/git", &["/srv/git", "/srv/git/shop.git", "/srv/git/two words/shop.git"]),
    ("/", &["/", "/srv/git"]),
    ("postgres://db.example:5432/shop", &["postgres://db.example/shop", "postgresql://DB.example:5432/shop"]),
    ("postgres://db.example", &["postgres://db.example:5432/shop", "postgres://db.example/any"]),
    ("postgres://[::1]:5433/shop", &["postgres://[0::1]:5433/shop"]),
];

const OUTSIDE: &[(&str, &[&str])] = &[
    (
        "https://deploy.example/api",
        &[
            // another server, or the same by another door
            "https://deploy.example.evil/api",
            "https://evil.deploy.example/api",
            "https://deploy.examplex/api",
            "https://deploy.example./api",
            "https://deploy.example:8443/api",
            "https://deploy.example:80/api",
            "http://deploy.example/api",
            "http://deploy.example:443/api",
            "ssh://deploy.example/api",
            // users, and what looks like the server and is one
            "https://deploy.example@evil.example/api",
            "https://deploy.example:443@evil.example/api",
            "https://anna@deploy.example/api",
            "https://@deploy.example/api",
            "https://evil.example/https://deploy.example/api",
            "https://evil.example#@deploy.example/api",
            "https://evil.example?@deploy.example/api",
            "https://evil.example\\@deploy.example/api",
            "https://deploy.example\\.evil.example/api",
            "https://deploy.example%2eevil/api",
            "https://deploy.example%00/api",
            "https://deploy.example\t.evil/api",
            "https://deploy.example\n/api",
            " https://deploy.example/api",
            "https://ｄeploy.example/api",
            "https://[::1]deploy.example/api",
            "HTTPS://deploy.example/api",
            "https:deploy.example/api",
            "https:/deploy.example/api",
            "https:///deploy.example/api",
            "//deploy.example/api",
            // ports
            "https://deploy.example:/api",
            "https://deploy.example:+443/api",
            "https://deploy.example:0/api",
            "https://deploy.example:66000/api",
            "https://deploy.example:443:443/api",
            // paths
            "https://deploy.example",
            "https://deploy.example/",
            "https://deploy.example/apis",
            "https://deploy.example/ap",
            "https://deploy.example/API",
            "https://deploy.example/api/../admin",
            "https://deploy.example/api/./x",
            "https://deploy.example/api/..",
            "https://deploy.example/api//x",
            "https://deploy.example//api",
            "https://deploy.example/api/%2e%2e/admin",
            "https://deploy.example/api/%2E%2E%2Fadmin",
            "https://deploy.example/%61pi",
            "https://deploy.example/api/..;/admin",
            "https://deploy.example/api\\..\\admin",
            "https://deploy.example/api/ x",
            "https://deploy.example/api?x=1",
            "https://deploy.example/api#x",
            "https://deploy.example/admin?/api",
        ],
    ),
    (
        "https://deploy.example/a/b",
        &["https://deploy.example/a", "https://deploy.example/b", "https://deploy.example/a/bb"],
    ),
    (
        "http://127.0.0.1:8099",
        &["http://127.0.0.1", "http://127.1:8099", "http://0x7f.0.0.1:8099", "http://[::1]:8099"],
    ),
    ("http://[::1]", &["http://[::2]", "http://[::1%25lo]", "http://[::1", "http://::1", "http://[::ffff:127.0.0.1]"]),
    (
        "ssh://git@git.example/repos",
        &[
            "ssh://git.example/repos/shop.git",
            "ssh://root@git.example/repos/shop.git",
            "ssh://git:secret@git.example/repos/shop.git",
            "ssh://git@evil@git.example/repos/shop.git",
            "ssh://git@git.example@evil.example/repos/shop.git",
            "ssh://git@git.example:2222/repos/shop.git",
            "ssh://-oProxyCommand=id@git.example/repos",
            "ssh://git@-oProxyCommand=id/repos",
            "git@git.example:repos/shop.git",
            "git+ssh://git@git.example/repos/shop.git",
            "https://git.example/repos/shop.git",
            "ext::ssh git@git.example /repos",
        ],
    ),
    ("ssh://git.example/repos", &["ssh://git@git.example/repos"]),
    (
        "/srv/shop",
        &[
            "/srv/shop-evil",
            "/srv",
            "/",
            "/srv/shop/../evil",
            "/srv/Shop",
            "srv/shop",
            "file:///srv/shop",
            "/evil/srv/shop",
        ],
    ),
    (
        "postgres://db.example:5432/shop",
        &[
            "postgres://db.example.evil:5432/shop",
            "postgres://db.example:5433/shop",
            "postgres://db.example:5432/shop2",
            "postgres://db.example:5432/Shop",
            "postgres://db.example:5432/shop/other",
            "postgres://anna@db.example:5432/shop",
            "postgres://db.example:5432,evil:5432/shop",
            "postgres://db.example:5432/shop?host=evil",
            "postgres://%2ftmp/shop",
            "https://db.example:5432/shop",
        ],
    ),
    ("postgres:///shop", &["postgres://db.example/shop", "postgres:///other"]),
];

#[test]
fn what_is_the_place_or_lies_below_it_is_let_through() {
    for (listed, asked) in WITHIN {
        for asked in *asked {
            assert!(lies(asked, listed), "{asked} is {listed} or below");
        }
    }
}

#[test]
fn what_only_looks_like_the_place_is_not_let_through() {
    for (listed, asked) in OUTSIDE {
        for asked in *asked {
            assert!(!lies(asked, listed), "{asked:?} is not {listed} or below");
        }
    }
}

#[test]
fn what_can_not_be_compared_is_listed_by_nobody() {
    for (text, why) in [
        ("", "is neither"),
        ("srv/git", "is neither"),
        ("./srv/git", "is neither"),
        ("/srv/../git", "is a folder that is not written plainly"),
        ("/srv/git/..", "is a folder that is not written plainly"),
        ("/srv/./git", "is a folder that is not written plainly"),
        ("/srv//git", "is a folder that is not written plainly"),
        ("//srv/git", "is a folder that is not written plainly"),
        ("//", "is a folder that is not written plainly"),
        ("/srv/git/", "is a folder that is not written plainly"),
        ("ftp://deploy.example", "is neither"),
        ("https://", "has no host"),
        ("https:///api", "has no host"),
        ("https://*.example", "has no host"),
        ("https://deploy.example:70000", "has a port"),
        ("https://anna:secret@deploy.example", "names a user"),
        ("https://deploy.example/a/../b", "has a path"),
        ("postgres://", "names neither"),
        ("postgres:///", "names neither"),
        ("postgres:///run/postgresql/shop", "has a path"),
    ] {
        let error = text.parse::<Place>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// What a target leaves out the host's own credentials say.
#[test]
fn of_a_database_what_the_target_names_counts() {
    let at = |server, name| Place::database(server, name).unwrap();
    let place = |text: &str| text.parse::<Place>().unwrap();
    let (database, server, socket) =
        (place("postgres://db:5432/shop"), place("postgres://db"), place("postgres:///shop"));
    for (asked, [in_database, on_server, by_socket]) in [
        (at(Some("db:5432"), Some("shop")), [true, true, false]),
        (at(Some("db:5432"), Some("other")), [false, true, false]),
        (at(Some("db:5432"), None), [true, true, false]),
        (at(Some("evil:5432"), None), [false, false, false]),
        (at(Some("evil:5432"), Some("shop")), [false, false, false]),
        (at(None, Some("shop")), [true, true, true]),
        (at(None, Some("other")), [false, true, false]),
        (at(None, None), [true, true, true]),
    ] {
        let found = [asked.is_below(&database), asked.is_below(&server), asked.is_below(&socket)];
        assert_eq!(found, [in_database, on_server, by_socket], "{asked}");
    }
    for (server, name) in [
        (Some(""), Some("shop")),
        (Some(":5432"), Some("shop")),
        (Some("/run/postgresql:5432"), Some("shop")),
        (Some("db:5432/shop?x"), None),
        (Some("anna@db:5432"), None),
        (Some("db:5432"), Some("")),
        (Some("db:5432"), Some("shop?host=evil")),
        (Some("db:5432"), Some("shop host=evil")),
    ] {
        assert!(Place::database(server, name).is_err(), "{server:?} {name:?}");
    }
}

#[test]
fn each_adapter_has_places_of_its_own() {
    for (text, adapters) in [
        ("/srv/git", [Adapter::Git].as_slice()),
        ("ssh://git@git.example", &[Adapter::Git]),
        ("https://git.example", &[Adapter::Git, Adapter::Http]),
        ("http://git.example", &[Adapter::Git, Adapter::Http]),
        ("postgres://db", &[Adapter::Postgres]),
    ] {
        let place: Place = text.parse().unwrap();
        for adapter in Adapter::ALL {
            assert_eq!(place.is_for(adapter), adapters.contains(&adapter), "{text} {}", adapter.name());
        }
    }
}
