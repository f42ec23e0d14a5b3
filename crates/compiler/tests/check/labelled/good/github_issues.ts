interface Issue {
  number: number;
  title: string;
  labels: { name: string }[];
}

/** Open issues of a GitHub repository with a label. */
export default async function githubIssues(args: { owner: string; repo: string; label?: string; apiBase?: string }): Promise<{ number: number; title: string }[]> {
  const url = new URL(`/repos/${args.owner}/${args.repo}/issues`, args.apiBase ?? 'https://api.github.com');
  url.searchParams.set('state', 'open');
  url.searchParams.set('per_page', '100');
  if (args.label) url.searchParams.set('labels', args.label);
  const response = await tgp.fetch(url, { headers: { accept: 'application/vnd.github+json' } });
  if (!response.ok) throw new Error(`GitHub answered ${response.status}`);
  const issues: Issue[] = await response.json();
  return issues.map(({ number, title }) => ({ number, title }));
}
