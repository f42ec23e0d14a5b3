import postWebhook from './post_webhook';

/** Closes a ticket and informs its owner. */
export default async function closeTicket(args: { id: string; hook: string }) {
  await tgp.exec_sql('UPDATE tickets SET state = ? WHERE id = ?', ['closed', args.id]);
  postWebhook({ url: args.hook, payload: { closed: args.id } });
  return { closed: args.id };
}
