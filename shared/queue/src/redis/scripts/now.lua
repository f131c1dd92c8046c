-- Returns the time in ms.
return {digits(now)}
