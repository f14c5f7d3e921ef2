import type { Profile } from "../../config/contract/models.ts";
import { voices } from "../../config/contract/voices.ts";
import type { ApiSettings } from "../../server/api/settings.ts";
import type { ModelTierOptions } from "../../server/model/settings.ts";
import type { RunningTier } from "../../server/model/tier.ts";
import { startTestApi, type TestApi } from "./api-tier.ts";
import { internalToken, modelTier } from "./model-tier.ts";

/** The three tiers over real sockets, with real engines and every voice of the catalogue. */
export interface WholeServer {
  readonly api: TestApi;
  readonly mist: RunningTier;
  readonly arcana: RunningTier;
  profile(profile: Profile): void;
  stop(): Promise<void>;
}

/** @param settings of the API tier. @param options of both model tiers. */
export async function startWholeServer(
  settings: Partial<ApiSettings> = {},
  options: Partial<ModelTierOptions> = {},
): Promise<WholeServer> {
  const tokens = { kind: "fixed", tokens: [internalToken, "internal-token"] } as const;
  const [mist, arcana] = await Promise.all([
    modelTier({ ...options, tier: "mist", tokens }),
    modelTier({ ...options, tier: "arcana", tokens }),
  ]);
  const route = ({ url }: RunningTier) => [{ pool: "p", service: url, weight: 100, idle: false }];
  const routes = { mist: route(mist), mistv2: route(mist), arcana: route(arcana) };
  const api = await startTestApi(routes, { voices, ...settings });
  return {
    api,
    mist,
    arcana,
    profile: (profile) => api.route(routes, { profile }),
    stop: async () => {
      await api.stop();
      await Promise.all([mist.stop(), arcana.stop()]);
    },
  };
}
