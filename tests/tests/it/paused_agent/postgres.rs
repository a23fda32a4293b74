//! A schema of a PostgreSQL database.

use std::time::Duration;

use holdfast_tests::database::Database;
use holdfast_tests::files::DeploymentFile;

use super::rig::{Rig, THING};

struct Schema {
    database: Database,
}

impl Rig for Schema {
    fn target_file(&self) -> String {
        self.database.target_file(THING)
    }

    fn deployment(&self, revision: &str, ttl: Duration) -> String {
        let to = revision.replace('r', "000");
        DeploymentFile::new(THING, ttl).migrates("migrate", &self.database.migrations(), &to).text().to_owned()
    }

    fn agent_environment(&self) -> Vec<(&'static str, String)> {
        vec![("HOLDFAST_RESOURCE", format!("[{}]", self.database.rule(THING)))]
    }

    fn effect(&self) -> &'static str {
        "migrate"
    }

    fn underwent(&self) -> Vec<String> {
        self.database.underwent()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_refuses_what_a_paused_agent_does_late() {
    super::the_resource_refuses_the_stale_effect(Schema { database: Database::start(THING) }).await;
}
