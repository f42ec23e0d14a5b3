import data from './data.json' with { type: 'json' };
export default async () => [data, (await import('./more.json', { with: { type: 'json' } })).default];
