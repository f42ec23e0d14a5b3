interface Ticket {
  id: string;
  severity: 'low' | 'medium' | 'high' | 'critical';
  ageHours: number;
  customerTier: 'free' | 'pro' | 'enterprise';
}

const SEVERITY_WEIGHT = { low: 1, medium: 3, high: 6, critical: 10 } as const;
const TIER_WEIGHT = { free: 1, pro: 1.5, enterprise: 2 } as const;

/** Orders support tickets by urgency: severity times tier, plus a bonus for age. */
export default function ticketPriority(args: { tickets: Ticket[]; agePerDay?: number }): { id: string; score: number }[] {
  const agePerDay = args.agePerDay ?? 0.5;
  return args.tickets
    .map((ticket) => ({
      id: ticket.id,
      score: SEVERITY_WEIGHT[ticket.severity] * TIER_WEIGHT[ticket.customerTier] + (ticket.ageHours / 24) * agePerDay,
    }))
    .sort((a, b) => b.score - a.score);
}
