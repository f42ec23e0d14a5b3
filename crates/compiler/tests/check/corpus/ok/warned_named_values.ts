const TENANT = '3f2c9a1e-7b4d-4e2a-9c55-8d1f0b6e7a21';
const SERVICE = 'https://api.open-meteo.com/v1/forecast';

/** Named and default values can be read and replaced. */
export default (args: { tenant?: string; to?: string }) => [args.tenant ?? TENANT, args.to ?? 'anna@acme-corp.de', SERVICE];
