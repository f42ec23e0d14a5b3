import sendMail from './send_mail';
/** Sends a mail to each address and counts failures. */
export default async function notifyAll(args: { addresses: string[]; subject: string }): Promise<{ sent: number; failed: number }> {
  const outcomes = await Promise.allSettled(args.addresses.map((to) => sendMail({ to, subject: args.subject })));
  const sent = outcomes.filter((outcome) => outcome.status === 'fulfilled').length;
  return { sent, failed: outcomes.length - sent };
}
