import type { LicenseState, LicenseVerdict } from "../../../config/contract/license.ts";
import type { Voice } from "../../../config/contract/voices.ts";
import type { Failure, FieldError } from "../../contract/errors.ts";
import type { PhonemesProblem } from "../../contract/text/phonemes.ts";
import type { AccountError, Role } from "../../store/accounts/accounts.ts";
import type { SignInRefusal } from "../../store/accounts/identities.ts";
import type { AuditAction } from "../../store/audit.ts";
import type { Scope } from "../../store/keys/key.ts";
import type { LexiconError } from "../../store/lexicon.ts";
import type { Alphabet } from "../../text/pls/alphabets.ts";
import type { PlsFault, SoundsFault } from "../../text/pls/faults.ts";
import { type Content, html } from "../html/html.ts";

const roles: Record<Role, string> = { owner: "owner", member: "member", viewer: "viewer" };

const sounds = (fault: SoundsFault): string => {
  switch (fault.kind) {
    case "long":
      return `it has ${fault.length} characters; the limit is ${fault.most}`;
    case "alphabet":
      return `its alphabet must be ${fault.allowed.join(" or ")}`;
    case "no-sound":
      return `the character ${fault.sign} is not in the phonetic alphabet`;
    case "stress-mark":
      return "a stress mark must be followed by a syllable";
    case "empty":
      return "it is empty";
    case "written":
      return fault.problem;
  }
};

const pls = (fault: PlsFault): string => {
  switch (fault.kind) {
    case "xml":
      return `The XML is invalid near column ${fault.column}: ${fault.saying}.`;
    case "encoding":
      return `The file must be UTF-8, but declares the encoding ${fault.encoding}.`;
    case "not-utf-8":
      return "The file is not valid UTF-8; save it as UTF-8.";
    case "doctype":
      return "Document types (<!DOCTYPE …>) and custom entities are not supported; remove the document type.";
    case "deep":
      return `Elements must be nested at most ${fault.most} levels deep.`;
    case "root":
      return `The file must begin with <lexicon version="1.0" xmlns="${fault.namespace}" …>.`;
    case "version":
      return 'The lexicon must have the attribute version="1.0".';
    case "alphabet":
      return `The lexicon's alphabet must be ${fault.allowed.join(" or ")}.`;
    case "language":
      return "xml:lang must be the language of a voice, such as en or en-US.";
    case "misplaced":
      return `<${fault.element}> is not allowed in <${fault.parent}>.`;
    case "no-grapheme":
      return "A lexeme must have a grapheme.";
    case "no-phoneme":
      return "A lexeme must have a phoneme; an alias is not supported.";
    case "phoneme":
      return `The phoneme ${fault.text}: ${sounds(fault.why)}.`;
    case "grapheme":
      return `The grapheme ${fault.text}: a word must have 1 to 60 letters; hyphens and apostrophes are allowed between letters.`;
    case "twice":
      return `${fault.text} is already in line ${fault.line}, with another pronunciation.`;
    case "full":
      return `A lexicon must have at most ${fault.most} words.`;
  }
};

/**
 * All texts of the dashboard in English. The compiler checks that the other languages have the same keys.
 * Messages of the stores and of the API are in English, so the English page shows them unchanged.
 */
export const englishTexts = {
  frame: {
    skip: "Skip to the content",
    pages: "Pages",
    signOut: "Sign out",
    account: "Account",
    keys: "Keys",
    playground: "Playground",
    words: "Words",
    usage: "Usage",
    users: "Users",
    auditLog: "Audit log",
    role: (role: Role, team: string | undefined) =>
      team === undefined ? roles[role] : `${roles[role]} of ${team}`,
    show: "Show",
  },
  signIn: {
    first: "First sign-in",
    makeOwner: "Create the owner",
    signIn: "Sign in",
    signInWith: (provider: string) => `Sign in with ${provider}`,
    fromNowOnWith: (provider: string) => `From now on, sign in with ${provider}`,
    choosePassword: "Choose a password",
    chooseThis: "Set password",
    yourName: "Your name",
    name: "Name",
    password: "Password",
    passwordHelp: (shortest: number) =>
      `At least ${shortest} characters. A sentence of several words is a good password.`,
    lost: "Forgot your password? Ask an owner for a new sign-in link.",
    signInAs: (name: Content) => html`Your user name is ${name}.`,
    nobodyYet: (command: Content) =>
      html`No user can sign in with a password yet. To create the first owner, open the link that ${command} printed.`,
    elsewhere: (link: Content, setting: Content) =>
      html`In other installations, the link is ${link}, where … is the content of the file that ${setting} names.`,
    wrong: "The name or the password is wrong.",
    wrongLink: "This link is not valid; open the link that the server created.",
    deadLink: "This link was already used or has expired. Ask an owner for a new link.",
    passwordLength: (shortest: number, longest: number, given: number) =>
      `A password must have ${shortest} to ${longest} characters; this password has ${given}.`,
    passwordIsName: "The password contains little more than the user name; choose another password.",
    passwordRepeats: "The password has too few different characters; choose another password.",
    manySignIns: "Too many sign-ins are in progress; try again in a moment.",
    manyTries: (minutes: number) =>
      `Too many attempts; try again in ${minutes === 1 ? "one minute" : `${minutes} minutes`}.`,
  },
  account: {
    title: "Your account",
    sessions: "Sessions",
    caption:
      "Your open sessions. Times are in UTC. A session ends after one day without use, and one week after the sign-in.",
    begun: "Signed in",
    seen: "Last used",
    ending: "End session",
    thisOne: "current session",
    end: (begun: string) => `End the session of ${begun}`,
    endOthers: "End all other sessions",
    password: "Password",
    byProvider: "You sign in with the identity provider, so your account has no password.",
    current: "Current password",
    next: "New password",
    change: "Change password",
    changeHelp: "This ends your other sessions.",
    changed: "Your password was changed, and your other sessions have ended.",
    wrong: "The current password is wrong.",
  },
  provider: {
    notBegunHere:
      "This sign-in was started in another browser, is already complete, or took more than ten minutes. Start again.",
    openLink: "Open your invitation link, and select the sign-in method on that page.",
    otherIssuer: (provider: string) =>
      `The response of ${provider} is from another issuer; start the sign-in again.`,
    lacksSecret: (provider: string) =>
      `The client secret for ${provider} is missing on this server. Ask the administrator of the server.`,
    lacksAuthority: (provider: string) =>
      `The certificate of the authority of ${provider} is missing on this server. Ask the administrator of the server.`,
    ended: (provider: string, reason: string) => `${provider} rejected the sign-in: ${reason}.`,
    unreachable: (provider: string) => `${provider} is not reachable; try again in a moment.`,
    late: "This sign-in took too long or was already used; start the sign-in again.",
    unknownServer: (provider: string, reason: string) =>
      `${provider} does not recognize this server (${reason}). The administrator of the server must check the client ID, the client secret and the redirect URI.`,
    notAProvider: (provider: string) =>
      `${provider} sent an invalid response; ask the administrator of ${provider}.`,
    unfitting: (provider: string) =>
      `The response of ${provider} does not match this sign-in; start the sign-in again.`,
    refused: ({ why }: SignInRefusal) => why,
  },
  keys: {
    title: "API keys",
    made: (name: string) => `The key ${name} was created.`,
    rotated: (name: string, end: Content) =>
      html`The key ${name} has a new secret. The previous secret expires ${end} UTC.`,
    copyNow: "Copy the secret now. It is not shown again.",
    tryIt: "Try it in a terminal",
    none: "There are no keys yet.",
    caption: "Times are in UTC. All replicas reject a revoked key within 5 seconds.",
    name: "Name",
    team: "Team",
    may: "Scopes",
    limits: "Limits",
    secrets: "Secrets (digests)",
    lastUsed: "Last used",
    use: "Usage",
    change: "Change",
    scopes: {
      "tts:write": "synthesize speech",
      "oov:read": "read out-of-vocabulary words",
      admin: "manage keys",
    } satisfies Record<Scope, string> as Record<Scope, string>,
    noEnd: "never expires",
    ends: (time: Content) => html`expires ${time}`,
    serverLimits: "server default",
    perMinute: (count: string) => `${count} requests per minute`,
    atOnce: (count: string) => `${count} concurrent streams`,
    today: (count: string) => `${count} today`,
    lastDays: (days: string) => `The last ${days} days`,
    day: "Day",
    requests: "Requests",
    failed: "Failed",
    audio: "Audio (s)",
    changeKey: (name: string) => `Change ${name}`,
    overlap: "Hours for which the previous secret stays valid",
    rotate: "Rotate",
    revoke: "Revoke now",
    makeKey: "New key",
    nameHelp: "The user or program that uses the key.",
    teamHelp: "The team that shares the words of the key. Optional.",
    endsOn: "Expires",
    endsOnHelp: "If the field is empty, the key never expires.",
    requestsPerMinute: "Requests per minute",
    streams: "Concurrent streams",
    limitHelp: "If the field is empty, the limit of the server applies.",
    make: "Create key",
    nameTaken: (name: string) =>
      `${name} is in use; key names are unique over all teams. Choose another name.`,
    wrongField: ({ detail }: FieldError) => detail,
  },
  playground: {
    title: "Playground",
    model: "Model",
    language: "Language",
    everyLanguage: "all languages",
    voice: "Voice",
    voiceOf: (id: string, gender: Voice["gender"], language: string, engine: string) =>
      `${id} (${[gender, language, engine].filter(Boolean).join(", ")})`,
    sample: "Play a sample",
    text: "Text",
    speak: "Speak",
    stop: "Stop",
    waveform: "Loudness of the speech",
    litWords: "Words, highlighted during playback",
    options: "Options",
    speed: "Speed (speedAlpha)",
    speedHelp: "mist: below 1 is faster. arcana: above 1 is faster.",
    rate: "Sampling rate, Hz",
    rateHelp: "If the field is empty, the default of the model applies.",
    mist: "mist and mistv2",
    plainNumbers: "do not expand numbers, dates and abbreviations",
    pauses: "<N> is a pause of N milliseconds",
    phonemes: "{phonemes} in curly brackets are a pronunciation",
    keepWords: "save out-of-vocabulary words for review (only with Download)",
    inlineSpeeds: "Speeds of [words] in square brackets",
    takeAlong: "Export",
    format: "Format",
    download: "Download",
    asCode: "As code",
    copy: "Copy",
    code: "The request as code",
    live: "Type and listen",
    liveText: "Text to hear while you type",
    liveHelp:
      "Each sentence is spoken once it is complete, with the voice and the options above. To hear an incomplete sentence, press Enter or stop typing.",
    interrupt: "Interrupt",
    liveWords: "Words that were spoken while you typed",
    before: "Recent",
    forget: "Clear list",
    needsScripts: "This page needs JavaScript; enable JavaScript in your browser.",
    refused: ({ message }: Failure) => message,
  },
  /** Scripts replace the names in braces. */
  client: {
    length: "{length} of {limit} characters",
    tooLong:
      "The text has {length} characters; the limit with {model} in the dashboard is {limit}. Split the text, or send the text through the API.",
    speaking: "Synthesizing …",
    firstAudio: "First audio after {ms} ms.",
    spoken: "First audio after {ms} ms; {seconds} s of speech in {whole} ms.",
    making: "Creating the file …",
    made: "{file} at {rate} Hz.",
    copied: "Copied.",
    seconds: "{seconds} s",
    answered: "The server responded with status {status}.",
    brokeOff: "The synthesis was interrupted; try again.",
    unreachable: "The server is not reachable; try again in a moment.",
    liveFirstAudio: "First audio {ms} ms after the sentence.",
    interrupted: "Interrupted.",
    liveClosed: "The server closed the connection; continue typing to connect again.",
  },
  words: {
    title: "Out-of-vocabulary words",
    noTeam: "keys without a team",
    team: "Team",
    nothing: (field: Content) =>
      html`No words to review. Out-of-vocabulary words appear here within one minute after a request with ${field}.`,
    met: (language: string, count: number, shown: string, first: Content, last: Content) =>
      html`${language}; ${count === 1 ? "1 occurrence" : `${shown} occurrences`}, from ${first} to ${last} UTC`,
    dismiss: (word: string) => `Dismiss ${word}`,
    how: (alphabet: Content, field: Content) =>
      html`Enter the pronunciation of each word. ${alphabet} is the alphabet of the option ${field}.`,
    alphabet: "The phonetic alphabet",
    sentences: "Sentences",
    sentencesKept: (longest: string) =>
      `The sentence around each word is saved, with at most ${longest} characters.`,
    sentencesNotKept: "Words are saved without the sentences around them.",
    keepSentences: "Save sentences",
    forgetSentences: "Stop saving sentences, and delete the saved sentences",
    say: (word: string) => `Pronunciation of ${word}`,
    listen: (word: string) => `Listen to ${word}`,
    save: (word: string) => `Save ${word}`,
    removeWord: (word: string) => `Remove ${word}`,
    lexicon: "Lexicon",
    empty: (one: Content, other: Content) =>
      html`The lexicon is empty. A saved pronunciation applies to ${one} and ${other} within 5 seconds, for every key of the team.`,
    word: "Word",
    language: "Language",
    saidAs: "Pronunciation",
    remove: "Remove",
    addWord: "New word",
    add: "Add word",
    stress: (example: Content) =>
      html`0, 1 or 2 before a vowel means no stress, primary stress or secondary stress: ${example} is custom.`,
    sounds: "Sounds",
    asIn: "As in the words",
    noSuchLanguage: "No voice speaks this language; select a language of the list.",
    wordRule: "A word must have 1 to 60 letters; hyphens and apostrophes are allowed between letters.",
    longSounds: (most: number) => `A pronunciation must have at most ${most} characters.`,
    unreadable: (written: string, after: string, problem: PhonemesProblem) =>
      `The pronunciation {${written}} is invalid after ${after}: ${problem}.`,
    refused: ({ message }: LexiconError) => message,
  },
  files: {
    title: "Files",
    asPls: (link: Content) => html`Files have the format ${link}. Each file contains one language.`,
    soundsIn: "Alphabet",
    alphabets: {
      ipa: "International Phonetic Alphabet, for other programs",
      "x-svc-tts": "alphabet of this page, without conversion",
    } satisfies Record<Alphabet, string> as Record<Alphabet, string>,
    export: "Export",
    fileToImport: "File to import",
    importHelp:
      "If the file has an error, nothing is imported. Pronunciations of the file replace existing pronunciations.",
    import: "Import",
    imported: (count: number, shown: string) =>
      `${count === 1 ? "One word was" : `${shown} words were`} imported.`,
    nothingTaken: "Nothing was imported. Errors in the file:",
    line: (line: string, problem: string) => `Line ${line}: ${problem}`,
    more: (count: string) => `And ${count} more.`,
    back: "Back to the words",
    problem: pls,
    alphabetRule: (names: readonly string[]) => `The alphabet must be ${names.join(" or ")}.`,
    large: (most: string) => `The file is larger than ${most}; split the file into smaller files.`,
    oneFile: "The form has more than one file; send one file at a time.",
    manyFields: "The form has more fields than this page; load the page again and send the form again.",
    unreadable: "The form is not readable; send the file again.",
    noFile: "The file is missing or empty; choose a file.",
  },
  usage: {
    title: "Usage",
    spoken: "Synthesis",
    byDay: "By day",
    byKey: "By key",
    byVoice: "By voice",
    day: "Day",
    key: "Key",
    team: "Team",
    model: "Model",
    voice: "Voice",
    csv: "Download as CSV",
    csvRows: ": one row for each day, key and voice, with the newest day first",
    csvCut: (most: string, rows: string) => `the newest ${most} of ${rows} rows`,
    csvWhy: ", because a file is limited to this number of rows",
    note: "Valid requests for speech. Days are in UTC. First audio is the time from a streamed request to its first audio. The values are updated every 5 seconds.",
    health: "Health",
    license: "License",
    licenseStates: {
      valid: "valid",
      grace: "grace",
      expired: "expired",
      invalid: "invalid",
      missing: "missing",
      not_required: "not required",
    } satisfies Record<LicenseState, string> as Record<LicenseState, string>,
    licenseUntil: (end: Content) => html`, until ${end} UTC`,
    speechEnds: (end: Content) => html`; synthesis ends ${end} UTC`,
    licenseWhy: ({ message }: LicenseVerdict) => message,
    models: "Models, from the view of the replica that created this page",
    state: "State",
    reachable: "reachable",
    notReachable: "not reachable",
    days: "Days",
    lastDays: (days: string) => `the last ${days} days`,
    plot: (first: string, last: string, most: string) =>
      `Requests per day from ${first} to ${last}, at most ${most}`,
    failedOnTop: (plot: string) => `${plot}. Failed requests are on top.`,
    nothing: "There were no requests in this period.",
    requests: "Requests",
    failed: "Failed",
    characters: "Characters",
    audio: "Audio (s)",
    firstAudio: "First audio (ms)",
    longest: "Longest first audio (ms)",
  },
  users: {
    title: "Users",
    roles,
    roleMeanings: {
      owner: "sees and changes everything",
      member: "creates keys of the team",
      viewer: "sees the keys of the team",
    } satisfies Record<Role, string> as Record<Role, string>,
    giveLink: (name: Content) =>
      html`Send this link to ${name}. It is shown only once, and is valid for one week or until it is used.`,
    name: "Name",
    role: "Role",
    team: "Team",
    hasSignedIn: "Sign-in",
    change: "Change",
    signsInBy: { password: "with a password", provider: "with the provider", none: "not yet" },
    changePerson: (name: string) => `Change ${name}`,
    newLink: "New sign-in link",
    remove: "Remove",
    revokeKeys: (names: string) => `Also revoke the keys that this user created or rotated: ${names}`,
    add: "New user",
    teamHelp: "Required for members and viewers.",
    addAndLink: "Add user and create link",
    nameRule:
      "A name must have 1 to 64 letters, digits and ._@+-, and start with a letter or digit. An e-mail address is allowed.",
    teamRule:
      "A team name must have 1 to 64 letters, digits, spaces and ._@:+-, and start with a letter or digit.",
    roleRule: "The role must be owner, member or viewer.",
    needsTeam: (role: Role) => `A ${roles[role]} must belong to a team; enter the team.`,
    refused: ({ message }: AccountError) => message,
  },
  auditLog: {
    title: "Audit log",
    caption: (count: string) => `Sign-ins and changes, ${count} per page, newest first. Times are in UTC.`,
    older: "Older entries",
    from: (address: string) => `from ${address}`,
    when: "Time",
    who: "Actor",
    what: "Action",
    of: "Object",
    more: "Details",
    actions: {
      "key created": "key created",
      "key rotated": "key rotated",
      "key revoked": "key revoked",
      "person added": "user added",
      "person changed": "user changed",
      "person removed": "user removed",
      "link made": "link created",
      "password chosen": "password set",
      "word saved": "word saved",
      "words imported": "words imported",
      "word removed": "word removed",
      "word dismissed": "word dismissed",
      "sentences turned on": "sentences turned on",
      "sentences turned off": "sentences turned off",
      "sign-in linked": "sign-in linked",
      "signed in": "signed in",
      "sign-in refused": "sign-in rejected",
    } satisfies Record<AuditAction, string> as Record<AuditAction, string>,
    commandLine: "the command line",
    unknownUser: "unknown user",
    key: (name: string) => `the key ${name}`,
    firstOwner: "the first owner",
    byGroup: (role: string) => `${role}, from a group`,
    scopesOf: (scopes: string, team: string) => `${scopes} of ${team}`,
    wordCount: (count: number, shown: string) => (count === 1 ? "1 word" : `${shown} words`),
    by: (provider: string, reason: Content) => html`with ${provider}${reason}`,
  },
  failures: {
    title: "The request failed",
    back: "Back to the dashboard",
    describe: ({ message }: Failure) => message,
    signedOut: "You are no longer signed in; sign in again.",
    forRoles: (allowed: readonly Role[], role: Role) =>
      `This page requires the role ${allowed.map((one) => roles[one]).join(" or ")}; your role is ${roles[role]}.`,
    otherSite: "Another site sent this form; open the dashboard and try again.",
    earlierSession: "This page belongs to an earlier session; load the page again and repeat the action.",
    database: "The database is not reachable; try again in a moment.",
    language: (names: readonly string[]) => `The language must be one of ${names.join(", ")}.`,
  },
};

/** The texts of one language. */
export type Texts = typeof englishTexts;
