//! `EnrollService`: an agent's first certificate, and the next ones.
//!
//! ```text
//! token looked up ─▶ request read, certificate signed ─▶ one transaction: token used up, certificate kept, identity begun ─▶ answer
//!    │ wrong: slower and slower, then shut out              │ not taken in: the certificate was never given to anybody
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use holdfast_common::code::Code;
use holdfast_common::id::AgentName;
use holdfast_common::problem::Problem;
use holdfast_common::time::Millis;
use holdfast_net::tls::ServerTls;
use holdfast_proto::convert::{parsed, wall_to_wire};
use holdfast_proto::v1;
use holdfast_proto::v1::enroll_service_server::EnrollService;
use tonic::{Request, Response, Status};

use super::shared::Shared;
use super::view::instant;
use super::{operator, refused, status};
use crate::auth::guesses::Answer;
use crate::auth::renewals::Renewals;
use crate::auth::{CertifiedAgent, Guesses, Hash, PresentedToken, ShownCertificate, caller, guard};
use crate::ca::{self, Authority, Files, Signed};
use crate::joining::{Asked, Refusal};
use crate::store::{CertificateRow, Digest, JoinTokenRow};

/// Longest text by which a machine is known.
const LONGEST_MACHINE: usize = 128;

/// What certificates are signed with.
#[derive(Clone)]
pub struct Signer {
    /// Where the authority is. Read at each signing, so that a rotation counts at once.
    pub files: Files,
    /// How long agents' certificates are good.
    pub life: Millis,
    /// Whose chain hosts are told to trust.
    pub tls: ServerTls,
}

/// The service.
#[derive(Clone)]
pub struct Enrolling {
    shared: Shared,
    guesses: Arc<Guesses>,
    renewals: Arc<Renewals>,
}

impl Enrolling {
    /// Over what every handler works with.
    #[must_use]
    pub fn new(shared: Shared, guesses: Arc<Guesses>) -> Self {
        let renewals = Arc::new(Renewals::of(shared.signer.life.into()));
        Self { shared, guesses, renewals }
    }

    /// A token that somebody made and nobody took back; anything else is a guess.
    async fn known(&self, presented: PresentedToken, name: &AgentName) -> Result<JoinTokenRow, Status> {
        let hash = Digest(presented.hash.0);
        let found = self.shared.reader.run(move |reader| reader.join_token(hash)).await;
        let found = found.map_err(|error| refused::by_store(&error))?;
        // The index found it; this compares it once more, in constant time.
        let found = found.filter(|row| Hash(row.hash.0) == presented.hash && !row.revoked);
        match found {
            Some(row) => Ok(row),
            None => Err(self.guessed(presented.address, name).await),
        }
    }

    async fn guessed(&self, address: IpAddr, name: &AgentName) -> Status {
        match self.guesses.wrong(address, Instant::now()) {
            Answer::After(pause) => {
                tokio::time::sleep(pause).await;
                self.told(address, name, refusal(&Refusal::Unknown, name))
            }
            Answer::ShutOut => {
                tracing::error!(
                    code = %Code::JoinGuessing,
                    %address,
                    "somebody guesses join tokens: nothing from there is looked at for ten minutes"
                );
                let who = address.to_string();
                self.shared.driver.refused(who, format!("join as {name}"), Code::JoinGuessing.title().to_owned());
                guard::guessing()
            }
        }
    }

    /// Kept and told.
    fn told(&self, address: IpAddr, name: &AgentName, problem: Problem) -> Status {
        tracing::warn!(%address, agent = %name, code = %problem.code, why = problem.title, "a host was not taken in");
        self.shared.driver.refused(address.to_string(), format!("join as {name}"), problem.title.clone());
        status::of(&problem)
    }

    fn too_often(&self, name: &AgentName) -> Status {
        let title = Code::RenewedTooOften.title();
        tracing::warn!(agent = %name, code = %Code::RenewedTooOften, "an agent asks for certificates again and again");
        self.shared.driver.refused(format!("agent {name}"), "renew its certificate".to_owned(), title.to_owned());
        let problem = Problem::new(Code::RenewedTooOften, title).so("no certificate was signed; those it has go on");
        status::of(&problem.next("it asks again by itself; its own log says why it can't keep what it is given"))
    }

    async fn sign(&self, name: &AgentName, request: Vec<u8>) -> Result<(Digest, Signed, Authority), Status> {
        let (files, life, name, now) =
            (self.shared.signer.files.clone(), self.shared.signer.life, name.clone(), self.shared.now());
        let signed = tokio::task::spawn_blocking(move || {
            let Some(authority) = files.read()? else { return Ok(None) };
            let request = ca::Request::read(&request)?;
            let signed = authority.agent(&name, &request, life, now)?;
            Ok(Some((request.key(), signed, authority)))
        });
        match signed.await {
            Ok(Ok(Some(signed))) => Ok(signed),
            Ok(Ok(None)) => Err(status::of(&closed())),
            Ok(Err(error)) => Err(not_signed(&error)),
            Err(error) => {
                tracing::error!(%error, "signing a certificate ended in the middle");
                Err(status::plain(Code::Internal, Code::Internal.title()))
            }
        }
    }

    fn row(&self, name: &AgentName, signed: &Signed) -> CertificateRow {
        CertificateRow {
            fingerprint: signed.fingerprint.clone(),
            agent: Some(name.clone()),
            issued_at: self.shared.now(),
            expires_at: Some(signed.expires_at),
            revoked_at: None,
        }
    }

    fn shown(&self, name: &AgentName, signed: &Signed, authority: &Authority) -> v1::Certificate {
        let presented = self.shared.signer.tls.chain();
        let mut authorities: Vec<Vec<u8>> = authority.trusted().iter().map(|one| one.to_vec()).collect();
        for other in presented.iter().skip(1).map(|one| one.to_vec()) {
            if !authorities.contains(&other) {
                authorities.push(other);
            }
        }
        v1::Certificate {
            agent: name.to_string(),
            chain: vec![signed.certificate.to_vec()],
            authorities,
            expires_at: Some(wall_to_wire(signed.expires_at)),
            fingerprint: signed.fingerprint.clone(),
        }
    }
}

#[tonic::async_trait]
impl EnrollService for Enrolling {
    async fn enroll(&self, request: Request<v1::EnrollRequest>) -> Result<Response<v1::EnrollResponse>, Status> {
        let presented: PresentedToken = caller(&request)?;
        let asked = request.into_inner();
        let name: AgentName = parsed("name", &asked.name).map_err(|why| status::invalid(&why))?;
        let token = self.known(presented, &name).await?;
        if asked.machine.len() > LONGEST_MACHINE || !asked.machine.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(status::plain(Code::InvalidMessage, "field `machine`: expected hexadecimal digits"));
        }
        let (key, signed, authority) = self.sign(&name, asked.request).await?;
        let asked = Asked { token: token.hash, name: name.clone(), key, machine: asked.machine };
        let joined = self.shared.driver.join(asked, self.row(&name, &signed)).await;
        let enrolment = match joined.map_err(|error| refused::about_tokens(&error))? {
            Ok(enrolment) => enrolment,
            Err(why) => return Err(self.told(presented.address, &name, refusal(&why, &name))),
        };
        self.shared.revocations.signed(&name, &signed.fingerprint);
        operator::stand(&self.shared, &name).await?;
        tracing::info!(
            agent = %name, address = %presented.address, token = token.id, again = enrolment.again,
            fingerprint = signed.fingerprint, "a host was taken in"
        );
        Ok(Response::new(v1::EnrollResponse {
            certificate: Some(self.shown(&name, &signed, &authority)),
            labels: enrolment.labels.into_iter().collect(),
            clock: Some(wall_to_wire(self.shared.now())),
        }))
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Result<Response<v1::RenewResponse>, Status> {
        let CertifiedAgent(name) = caller(&request)?;
        let shown: ShownCertificate = caller(&request)?;
        if !self.renewals.take(&name, Instant::now()) {
            return Err(self.too_often(&name));
        }
        let (_, signed, authority) = self.sign(&name, request.into_inner().request).await?;
        let renewed = self.shared.driver.renew(name.clone(), shown.fingerprint, self.row(&name, &signed)).await;
        if !renewed.map_err(|error| refused::about_tokens(&error))? {
            return Err(guard::revoked(&name));
        }
        self.shared.revocations.signed(&name, &signed.fingerprint);
        tracing::info!(agent = %name, fingerprint = signed.fingerprint, "an agent's certificate was renewed");
        Ok(Response::new(v1::RenewResponse { certificate: Some(self.shown(&name, &signed, &authority)) }))
    }
}

fn refusal(why: &Refusal, name: &AgentName) -> Problem {
    let again = "an operator makes the next one: holdfast agent token create";
    match why {
        Refusal::Unknown => Problem::new(Code::JoinTokenUnknown, "the join token is not known here")
            .so("no agent was enrolled; the refusal is recorded")
            .next(again),
        Refusal::Expired { at } => {
            Problem::new(Code::JoinTokenExpired, format!("the join token expired at {}", instant(*at)))
                .so("no agent was enrolled")
                .next(again)
        }
        Refusal::Used { id, by } => {
            Problem::new(Code::JoinTokenUsed, format!("the join token {id} was used: {by} has joined with it"))
                .so("nothing was changed; the refusal is recorded")
                .next(format!("if that was not your host, somebody else had the token: {}", removes(by)))
                .next(again)
                .with("agent", by.as_str())
        }
        Refusal::OtherName { only } => {
            Problem::new(Code::NotAllowed, format!("the join token is for {only}, not for {name}"))
                .so("no agent was enrolled; the token is still good")
                .next(format!("join with --name {only}"))
                .next(again)
        }
        Refusal::NameTaken { only } => {
            let problem = name_taken(name).so("the join token is still good");
            // A token that is for this name alone lets nobody in under another one.
            if *only { problem } else { problem.next("or join under another name: --name NAME") }
        }
    }
}

/// Nobody takes the name of an agent that has it.
pub(super) fn name_taken(name: &AgentName) -> Problem {
    Problem::new(Code::AgentNameTaken, format!("an agent {name} is enrolled, or has spoken"))
        .so("it goes on as it is")
        .next(format!("if that host is gone for good, or is to join anew, an operator first: {}", removes(name)))
        .with("agent", name.as_str())
}

fn removes(name: &AgentName) -> String {
    format!("holdfast agent remove {name} --confirm {name} --reason TEXT")
}

fn closed() -> Problem {
    Problem::new(Code::EnrolmentClosed, Code::EnrolmentClosed.title())
        .so("nothing was changed; the join token is still good")
        .next("get a certificate with the URI holdfast://agent/NAME from the authority in tls.client_ca, and name its files")
        .next("or make an authority on the coordinator's host: holdfast-coordinator ca create")
}

fn not_signed(error: &ca::Error) -> Status {
    match error {
        ca::Error::Request(_) => {
            let problem = Problem::new(Code::BadCertificateRequest, error.to_string());
            status::of(&problem.so("no certificate was signed").next("holdfast-agent join makes a request that fits"))
        }
        ca::Error::Read { .. }
        | ca::Error::Write { .. }
        | ca::Error::Content { .. }
        | ca::Error::Exists { .. }
        | ca::Error::Missing { .. }
        | ca::Error::Make(_)
        | ca::Error::Host(_) => {
            tracing::error!(%error, "could not sign a certificate");
            let problem = Problem::new(Code::Internal, "the coordinator could not sign a certificate");
            status::of(&problem.so("nothing was changed").next("read the coordinator's log"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_a_name_that_the_token_does_not_let_in() {
        let name = AgentName::new("web-01").expect("a name");
        let bound = refusal(&Refusal::NameTaken { only: true }, &name);
        assert_eq!(bound.code, Code::AgentNameTaken);
        assert!(!bound.next.iter().any(|line| line.contains("--name")), "{bound}");
        assert!(bound.next[0].ends_with("holdfast agent remove web-01 --confirm web-01 --reason TEXT"), "{bound}");
        let free = refusal(&Refusal::NameTaken { only: false }, &name);
        assert!(free.next.iter().any(|line| line.contains("--name NAME")), "{free}");
    }
}
