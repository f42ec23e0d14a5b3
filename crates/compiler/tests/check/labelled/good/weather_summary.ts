interface Forecast {
  hourly: { time: string[]; temperature_2m: number[] };
}

const API = 'https://api.open-meteo.com/v1/forecast';

/** The lowest and highest temperature of the next days at a place. */
export default async function weatherSummary(args: { latitude: number; longitude: number; days?: number }): Promise<{ min: number; max: number }> {
  const url = new URL(API);
  url.search = new URLSearchParams({
    latitude: String(args.latitude),
    longitude: String(args.longitude),
    hourly: 'temperature_2m',
    forecast_days: String(args.days ?? 3),
  }).toString();
  const response = await tgp.fetch(url);
  if (!response.ok) throw new Error(`the weather service answered ${response.status}`);
  const forecast: Forecast = await response.json();
  const temperatures = forecast.hourly.temperature_2m;
  return { min: Math.min(...temperatures), max: Math.max(...temperatures) };
}
