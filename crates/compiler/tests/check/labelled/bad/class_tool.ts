/** Sends mails. */
export default class Mailer {
  send(args: { to: string }): string {
    return args.to;
  }
}
