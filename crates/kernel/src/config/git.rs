//! `git`: where else the tools are kept.

use super::fields::Fields;

/// A hosting service with an API that the kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitProvider {
    GitHub,
    GitLab,
    Bitbucket,
}

/// How a forged tool reaches the remote branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStrategy {
    Direct,
    PullRequest,
}

/// How the kernel authenticates to the remote: `git.auth`.
#[derive(Clone, PartialEq, Eq)]
pub struct GitAuth {
    pub token: Option<String>,
    pub user: String,
    pub email: String,
}

impl Default for GitAuth {
    fn default() -> Self {
        Self {
            token: None,
            user: "tgp-bot[bot]".to_owned(),
            email: "tgp-bot@users.noreply.github.com".to_owned(),
        }
    }
}

impl std::fmt::Debug for GitAuth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token must not reach a log.
        let token = self.token.as_ref().map(|_| "[redacted]");
        formatter
            .debug_struct("GitAuth")
            .field("token", &token)
            .field("user", &self.user)
            .field("email", &self.email)
            .finish()
    }
}

/// The section `git`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitConfig {
    pub provider: Option<GitProvider>,
    pub repo: Option<String>,
    /// Any URL or local path, instead of the provider's own for `repo`.
    pub url: Option<String>,
    pub branch: String,
    pub api_base_url: Option<String>,
    pub auth: GitAuth,
    pub write_strategy: WriteStrategy,
}

impl GitConfig {
    /// Whether there is a remote; without one the section only says who signs the commits.
    #[must_use]
    pub fn has_remote(&self) -> bool {
        self.url.is_some() || self.repo.is_some()
    }
}

pub(super) fn read(mut git: Fields<'_>) -> GitConfig {
    let provider = git.choice(
        "provider",
        &[
            ("github", GitProvider::GitHub),
            ("gitlab", GitProvider::GitLab),
            ("bitbucket", GitProvider::Bitbucket),
        ],
    );
    let repo = git.text("repo");
    let url = git.text("url");
    if provider.is_some() != repo.is_some() {
        git.problem("repo", "git.provider and git.repo must be set together, or git.url instead of both");
    }
    if let Some(repo) = &repo
        && !repo.contains('/')
    {
        git.problem("repo", "must be owner/name");
    }
    let mut auth = GitAuth::default();
    if let Some(mut fields) = git.section("auth") {
        auth.token = fields.text("token").filter(|token| !token.is_empty());
        auth.user = fields.text("user").unwrap_or(auth.user);
        auth.email = fields.text("email").unwrap_or(auth.email);
        if !auth.email.contains('@') {
            fields.problem("email", "must be an e-mail address");
        }
        fields.done();
    }
    let config = GitConfig {
        provider,
        repo,
        url,
        branch: git.text("branch").unwrap_or_else(|| "main".to_owned()),
        api_base_url: git.text("apiBaseUrl"),
        auth,
        write_strategy: git
            .choice("writeStrategy", &[("direct", WriteStrategy::Direct), ("pr", WriteStrategy::PullRequest)])
            .unwrap_or(WriteStrategy::Direct),
    };
    git.done();
    config
}
