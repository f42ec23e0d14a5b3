import { execSync } from 'node:child_process';

/** The current git branch. */
export default function branch(args: { cwd: string }): string {
  return execSync('git branch --show-current', { cwd: args.cwd }).toString().trim();
}
