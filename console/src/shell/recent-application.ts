// The application that was used last in this tab. Pages without an application show its navigation.
const STORED = 'berth.application';

export const recentApplication = (): string | undefined => sessionStorage.getItem(STORED) ?? undefined;

export const rememberApplication = (id: string): void => sessionStorage.setItem(STORED, id);

export const forgetApplication = (): void => sessionStorage.removeItem(STORED);
