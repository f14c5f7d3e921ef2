/** The default texts of `svc-tts bench`. Their lengths are typical for voice agents. */
export const defaultTexts: readonly string[] = [
  "Thank you for calling. How may I help you today?",
  "Your order left our warehouse this morning and will be with you by Friday, before noon.",
  "I am sorry to hear that. Let me look at your account, it will take only a moment.",
  "The next train to the airport leaves from platform nine. It stops at every station, so allow forty minutes for the journey.",
  "Of course. Which day would suit you best, and do you prefer the morning or the afternoon?",
  "We found two rooms with a view of the lake. The larger one has a balcony, and breakfast is part of the price in both.",
];
