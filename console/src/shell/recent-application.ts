// The application that was looked at last, in this tab: pages that belong to none keep its navigation.
const STORED = 'berth.application';

export const recentApplication = (): string | undefined => sessionStorage.getItem(STORED) ?? undefined;

export const rememberApplication = (id: string): void => sessionStorage.setItem(STORED, id);

export const forgetApplication = (): void => sessionStorage.removeItem(STORED);
