/** Ranks players. */
export default function rank({ players }: { players: { name: string; score: number }[] }) {
  players.sort((a, b) => b.score - a.score);
  return players.map((player, index) => ({ rank: index + 1, name: player.name }));
}
